"""Who may call an upstream at a time, who waits, and who leaves a place to others. ISO-2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.calling_client import ClientRefused, ClientRequest
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.call_timeout import CallClock
from goat_mcp.upstreams.calls.upstream_limiter import MAX_QUEUED, UpstreamLimiter
from goat_mcp.upstreams.transports.callers import Callers

pytestmark = pytest.mark.anyio

FOREVER_S = 20.0
FORM: dict[str, Any] = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
CAN_ANSWER: dict[str, Any] = {"elicitation": {"form": {}}}


class Person:
    """A client that answers when it is told to."""

    protocol_version = "2026-07-28"
    is_stateless = True
    log_level = ""
    notices = None
    known_roots = ()
    capabilities: Mapping[str, Any] = CAN_ANSWER
    given: Mapping[str, Any] = {}

    def __init__(self) -> None:
        self.asked = 0
        self.answers = anyio.Event()
        self.refuses = False

    @property
    def cancellation(self) -> Mapping[str, Any]:
        return {}

    async def roots(self) -> Sequence[Path]:
        return ()

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        self.asked += 1
        await self.answers.wait()
        if self.refuses:
            raise ClientRefused(-32600, "no")
        return {"question": {"action": "accept", "content": {}}}

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        raise AssertionError("nobody tells it anything")


class Called:
    """An upstream's calls, each of which asks so many questions at once and ends when it is told to."""

    def __init__(self, limiter: UpstreamLimiter) -> None:
        self.limiter = limiter
        self.log: list[str] = []
        self.ends = anyio.Event()

    async def plain(self, name: str) -> None:
        async with self.limiter.permit(FOREVER_S):
            self.log.append(name)
            await self.ends.wait()

    async def asking(self, name: str, person: Person, questions: int = 1) -> None:
        callers = Callers("u", CAN_ANSWER, allow={"elicitation"}, roots=lambda has_some: ())

        async def ask() -> None:
            try:
                await callers.answer("elicitation/create", FORM)
            except ClientRefused as refused:
                self.log.append(f"{name} {refused.message}")
            else:
                self.log.append(f"{name} answered")

        async with self.limiter.permit(FOREVER_S) as permit:
            with callers.one(ToolContext(call_id="c", client=person), CallClock(60, 60), permit):
                async with anyio.create_task_group() as group:
                    for _ in range(questions):
                        group.start_soon(ask)
                await self.ends.wait()


async def is_busy(limiter: UpstreamLimiter) -> bool:
    """Whether a call would have to wait."""
    try:
        async with limiter.permit(0):
            return False
    except ToolError as busy:
        assert busy.code is ErrorCode.BUSY
        return True


async def test_a_client_that_never_answers_keeps_nobody_else_from_an_upstream() -> None:
    called, silent = Called(UpstreamLimiter("u", 2)), Person()
    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(called.asking, str(number), silent)
        await anyio.wait_all_tasks_blocked()

        assert (silent.asked, called.limiter.in_flight) == (5, 5)
        assert not await is_busy(called.limiter)
        group.cancel_scope.cancel()
    assert called.limiter.in_flight == 0


@pytest.mark.parametrize("refuses", [False, True])
async def test_what_was_answered_goes_on_in_the_next_free_place_before_new_calls(refuses: bool) -> None:
    called, others, person = Called(UpstreamLimiter("u", 1)), Called(UpstreamLimiter("u", 1)), Person()
    others.limiter, others.log, person.refuses = called.limiter, called.log, refuses
    said = "asker no" if refuses else "asker answered"
    before: list[str] = []
    then: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(called.asking, "asker", person)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(others.plain, "running")
        group.start_soon(called.plain, "waiting")
        await anyio.wait_all_tasks_blocked()
        person.answers.set()
        await anyio.wait_all_tasks_blocked()
        before = list(called.log)
        others.ends.set()
        await anyio.wait_all_tasks_blocked()
        then = list(called.log)
        called.ends.set()

    assert (before, then, called.log) == (["running"], ["running", said], ["running", said, "waiting"])
    assert not await is_busy(called.limiter)


async def test_a_call_with_several_questions_has_its_place_again_once_all_are_answered() -> None:
    called, person = Called(UpstreamLimiter("u", 1)), Person()
    while_asked = afterwards = None
    async with anyio.create_task_group() as group:
        group.start_soon(called.asking, "asker", person, 3)
        await anyio.wait_all_tasks_blocked()
        while_asked = await is_busy(called.limiter)
        person.answers.set()
        await anyio.wait_all_tasks_blocked()
        afterwards = await is_busy(called.limiter)
        called.ends.set()

    assert (while_asked, afterwards) == (False, True)
    assert not await is_busy(called.limiter)


async def test_a_call_that_ends_while_it_waits_to_go_on_leaves_its_place_to_nobody_twice() -> None:
    called, person = Called(UpstreamLimiter("u", 1)), Person()
    is_full = False
    async with anyio.create_task_group() as group:
        async with anyio.create_task_group() as given_up:
            given_up.start_soon(called.asking, "asker", person)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(called.plain, "running")
            await anyio.wait_all_tasks_blocked()
            person.answers.set()
            await anyio.wait_all_tasks_blocked()
            given_up.cancel_scope.cancel()
        await anyio.wait_all_tasks_blocked()
        is_full = await is_busy(called.limiter)
        called.ends.set()

    assert is_full
    assert not await is_busy(called.limiter)
    async with called.limiter.permit(0):
        assert await is_busy(called.limiter)


async def test_calls_that_were_cancelled_while_they_waited_are_not_counted_as_waiting() -> None:
    called, later = Called(UpstreamLimiter("u", 1)), Called(UpstreamLimiter("u", 1))
    later.limiter = called.limiter
    async with anyio.create_task_group() as group:
        group.start_soon(called.plain, "running")
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as cancelled:
            for number in range(MAX_QUEUED):
                cancelled.start_soon(called.plain, f"cancelled {number}")
            await anyio.wait_all_tasks_blocked()
            # Begins before any of them has had a turn to end.
            group.start_soon(later.plain, "new")
            cancelled.cancel_scope.cancel()
        called.ends.set()
        await anyio.wait_all_tasks_blocked()
        later.ends.set()

    assert (called.log, later.log) == (["running"], ["new"])


async def test_calls_that_were_cancelled_before_they_began_do_not_queue() -> None:
    called, later = Called(UpstreamLimiter("u", 1)), Called(UpstreamLimiter("u", 1))
    later.limiter = called.limiter

    async def cancelled(scope: anyio.CancelScope) -> None:
        with scope:
            await called.plain("cancelled")

    async with anyio.create_task_group() as group:
        group.start_soon(called.plain, "running")
        await anyio.wait_all_tasks_blocked()
        for _ in range(MAX_QUEUED):
            scope = anyio.CancelScope()
            scope.cancel()
            group.start_soon(cancelled, scope)
        group.start_soon(later.plain, "new")
        await anyio.wait_all_tasks_blocked()
        called.ends.set()
        await anyio.wait_all_tasks_blocked()
        later.ends.set()

    assert (called.log, later.log) == (["running"], ["new"])
