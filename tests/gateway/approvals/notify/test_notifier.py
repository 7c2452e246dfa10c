"""When messages are sent: after a while, once over all processes, not too many at a time, and about all kinds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from goat_mcp.calls.approvals.record import Approval, Choice, Kind, Request, Verdict
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.gateway.approvals.notify import notifier
from goat_mcp.gateway.approvals.notify.message import Message, message_about
from tests.gateway.approvals.notify.desk import Desk, running, until

pytestmark = pytest.mark.anyio


class Bell:
    """A channel that keeps what it is sent."""

    key = name = "bell"

    def __init__(self) -> None:
        self.rung: list[str] = []
        self.fails = False

    async def send(self, message: Message) -> str:
        if self.fails:
            raise ToolError(ErrorCode.NETWORK, "no bell", "Ring again.")
        self.rung.append(message.approval.id)
        return ""

    async def send_test(self) -> None: ...

    async def check(self) -> None: ...


async def test_who_answers_at_the_desk_is_not_disturbed_twice(desk: Desk) -> None:
    bell = Bell()
    async with running(desk.over([("0", bell)], after_s=0.6)):
        quick = desk.add("s1")
        slow = desk.add("s2")
        await desk.queue.approve(quick.id, by="form in claude-code")
        await until(lambda: bell.rung)
        waited_s = time.time() - slow.at_s

    assert bell.rung == [slow.id]
    assert waited_s >= 0.6


async def test_two_processes_send_each_record_once(desk: Desk) -> None:
    first, second = Bell(), Bell()
    ids = {desk.add(f"s{number}").id for number in range(5)}
    async with running(desk.over([("0", first)]), desk.over([("0", second)])):
        await until(lambda: len(first.rung) + len(second.rung) >= 5)
        await anyio.sleep(0.3)

    assert sorted(first.rung + second.rung) == sorted(ids)


async def test_what_a_dead_process_began_to_send_is_sent_and_a_living_one_is_left_to_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_dead, of_living = desk.add("s1"), desk.add("s2")
    assert desk.notices.claim(of_living.id, "bell", "d", True)
    monkeypatch.setattr("goat_mcp.processes.process_table.this_process", lambda: "1-never")
    assert desk.notices.claim(of_dead.id, "bell", "d", True)
    monkeypatch.undo()
    bell = Bell()
    async with running(desk.over([("0", bell)])):
        await until(lambda: bell.rung)
        await anyio.sleep(0.2)

    assert bell.rung == [of_dead.id]


async def test_of_many_at_once_ten_are_sent(desk: Desk) -> None:
    bell = Bell()
    for number in range(15):
        desk.add(f"s{number}")
    async with running(desk.over([("0", bell)])):
        await until(lambda: len(bell.rung) == 10)
        await anyio.sleep(0.3)

    assert len(bell.rung) == notifier.AT_ONCE


async def test_a_channel_that_fails_keeps_no_other_from_being_used(desk: Desk) -> None:
    broken, bell = Bell(), Bell()
    broken.fails, broken.key = True, "broken"
    desk.add()
    async with running(desk.over([("0", broken), ("1", bell)])):
        await until(lambda: bell.rung and desk.problems)

    assert desk.problems == {"0": "no bell"}


class Plans:
    """Where plans wait; they are approved in a store of their own."""

    kind = Kind.PLAN

    def waiting(self) -> Sequence[Request]:
        return [Request(kind=Kind.PLAN, subject="quiet-otter", title="Plan: rename it", principal="local")]

    async def approve(self, approval: Approval, verdict: Verdict) -> str:
        raise AssertionError("nobody did")

    async def deny(self, approval: Approval, verdict: Verdict) -> str:
        raise AssertionError("nobody did")


async def test_other_kinds_are_sent_too_though_nobody_looked_at_the_queue(desk: Desk) -> None:
    desk.queue = type(desk.queue)(desk.state, desk.store, lambda: [Plans()])
    bell = Bell()
    async with running(desk.over([("0", bell)])):
        await until(lambda: bell.rung)

    (approval,) = desk.store.waiting()
    assert (approval.request.kind, bell.rung) == (Kind.PLAN, [approval.id])


def test_approving_needs_once_among_the_choices_and_all_of_it_shown(desk: Desk) -> None:
    approval = desk.add()
    request = approval.request

    def may(**members: object) -> bool:
        return message_about(replace(approval, request=replace(request, **members)), Redactor()).may_approve  # pyright: ignore[reportArgumentType]  # members by name

    assert may() and may(choices=(Choice("once", "Allow once"),))
    assert not may(choices=(Choice("server", "All tools of this server"),))
    assert not may(diff="+x\n" * 3000)
