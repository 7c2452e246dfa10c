"""Calls that need a person's decision: from the client's form or from the queue, and what the decision is good for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.approvals.asking import QueuedApprovals
from goat_mcp.calls.approvals.options import ApprovalOptions
from goat_mcp.calls.approvals.record import Approval, DecidedBefore, Status, Verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DENY
from goat_mcp.calls.permissions.mode import Approval as Approver
from goat_mcp.calls.permissions.permission import Permission
from goat_mcp.calls.permissions.remembered import RememberedRules
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.calls.permissions.rule_set import RuleSet
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.gateway.approvals.queue import ApprovalQueue
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning
from tests.shared_states import States
from tests.tool_doubles import spec

pytestmark = pytest.mark.anyio

PENDING = ErrorCode.APPROVAL_PENDING


def write(path: str) -> Call:
    return Call(spec("Write", SideEffect.MUTATING), {"file_path": path}, (path,), (), (path,), ("/ws",))


class Person:
    """The person behind a client: leaves a form open until they are told what to answer."""

    def __init__(self) -> None:
        self.shown = anyio.Event()
        self.answered = anyio.Event()
        self.withdrawn = False
        self.choice = ""

    async def ask(self, form: Form) -> Answer:
        self.shown.set()
        try:
            await self.answered.wait()
        except anyio.get_cancelled_exc_class():
            self.withdrawn = True
            raise
        return Answer(Reply.ACCEPTED, {form.questions[0].name: self.choice})

    def answer(self, choice: str) -> None:
        self.choice = choice
        self.answered.set()


class Desk:
    """One process over the user's state: its permission stage, and the queue as the user sees it."""

    def __init__(
        self, state: StateDirectory, *, wait_s: float = 30.0, expires_s: float = 3600.0, rules: RuleSet | None = None
    ) -> None:
        self.store = ApprovalStore(state)
        self.queue = ApprovalQueue(state, self.store)
        self.permission = Permission(
            rules or RuleSet(),
            approval=Approver.ELICIT,
            remembered=RememberedRules(state, "scope", no_warning),
            approvals=QueuedApprovals(self.store, ApprovalOptions(wait_s=wait_s, expires_s=expires_s)),
            scope_id="scope",
        )
        self._calls = 0

    async def settled(self, call: Call, person: Person | None = None, **members: Any) -> str:
        self._calls += 1
        ctx = ToolContext(call_id=f"c{self._calls}", session_key="s", principal="p").changed(**members)
        if person is not None:
            ctx = ctx.changed(ask=person.ask)
        try:
            return (await self.permission.settle(self.permission.decide(call, ctx), call, ctx)).reason
        except ToolError as refused:
            return f"{refused.code} {refused.message}"

    async def one_waits(self) -> Approval:
        with anyio.fail_after(10):
            while True:
                if waiting := await self.queue.waiting():
                    return waiting[0]
                await anyio.sleep(0.01)


@pytest.fixture
def state(tmp_path: Path, states: States) -> StateDirectory:
    return states(tmp_path / "state")


async def while_it_waits(desk: Desk, call: Call, act: Callable[[Approval], Awaitable[object]]) -> str:
    """What comes of a call while `act` does something about its record."""
    outcome = ""

    async def run() -> None:
        nonlocal outcome
        outcome = await desk.settled(call)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await act(await desk.one_waits())
    return outcome


async def test_a_call_of_a_client_without_forms_waits_and_runs_once_it_is_approved_elsewhere(
    state: StateDirectory,
) -> None:
    desk, elsewhere = Desk(state), Desk(state)

    outcome = await while_it_waits(desk, write("/ws/a"), lambda found: elsewhere.queue.approve(found.id, by="terminal"))

    assert outcome == "mode default, allowed once by the user"
    found = desk.store.newest_first()[0]
    assert (found.status, found.decided_by, found.used_by) == (Status.APPROVED, "terminal", "c1")


async def test_a_denial_from_elsewhere_says_why(state: StateDirectory) -> None:
    desk = Desk(state)

    outcome = await while_it_waits(
        desk, write("/ws/a"), lambda found: desk.queue.deny(found.id, reason="use b instead", by="page")
    )

    assert outcome == f"{ErrorCode.PERMISSION} the user refused Write: use b instead"


async def test_nobody_decides_in_time_then_an_identical_call_runs_once_after_the_approval(
    state: StateDirectory,
) -> None:
    desk = Desk(state, wait_s=0.0)
    first = await desk.settled(write("/ws/a"))
    (waiting,) = await desk.queue.waiting()
    again = await desk.settled(write("/ws/a"))

    assert len(await desk.queue.waiting()) == 1, "it is the same request"
    await desk.queue.approve(waiting.id, by="terminal")
    outcomes = [await desk.settled(write("/ws/a")) for _ in range(2)]

    assert first.startswith(PENDING) and again.startswith(PENDING)
    assert outcomes[0] == "mode default, allowed once by the user"
    assert outcomes[1].startswith(PENDING)


@pytest.mark.parametrize(
    ("call", "members"),
    [
        (write("/ws/b"), {}),
        (write("/ws/a"), {"principal": "q"}),
        (replace(write("/ws/a"), spec=replace(write("/ws/a").spec, description="Another one.")), {}),
        (replace(write("/ws/a"), writes=("/elsewhere",)), {}),
        (replace(write("/ws/a"), roots=("/other",)), {}),
    ],
    ids=["other arguments", "another principal", "another definition", "a link leads elsewhere", "another workspace"],
)
async def test_an_approval_is_for_this_very_call(state: StateDirectory, call: Call, members: dict[str, Any]) -> None:
    desk = Desk(state, wait_s=0.0)
    await desk.settled(write("/ws/a"))
    (waiting,) = await desk.queue.waiting()
    await desk.queue.approve(waiting.id, by="terminal")

    assert (await desk.settled(call, **members)).startswith(PENDING)


async def test_an_approval_that_was_not_used_expires(state: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(state, wait_s=0.0)
    await desk.settled(write("/ws/a"))
    (waiting,) = await desk.queue.waiting()
    await desk.queue.approve(waiting.id, by="terminal")
    monkeypatch.setattr("goat_mcp.calls.approvals.store.time.time", lambda: waiting.request.expires_at_s + 1)

    assert (await desk.settled(write("/ws/a"))).startswith(PENDING)
    assert desk.store.find(waiting.id).status is Status.EXPIRED
    with pytest.raises(DecidedBefore, match="has expired"):
        await desk.queue.approve(waiting.id, by="terminal")


async def test_the_form_of_the_client_decides_and_the_record_says_so(state: StateDirectory) -> None:
    desk, person = Desk(state), Person()
    person.answer(ALLOW_ONCE)

    assert await desk.settled(write("/ws/a"), person, client_name="Some client") == (
        "mode default, allowed once by the user"
    )
    found = desk.store.newest_first()[0]
    assert (found.status, found.decided_by) == (Status.APPROVED, "form in Some client")


async def test_a_decision_from_elsewhere_withdraws_the_form(state: StateDirectory) -> None:
    desk, person = Desk(state), Person()
    outcome = ""

    async def run() -> None:
        nonlocal outcome
        outcome = await desk.settled(write("/ws/a"), person)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await person.shown.wait()
            await desk.queue.approve((await desk.one_waits()).id, by="page")

    assert outcome == "mode default, allowed once by the user" and person.withdrawn


async def test_an_answer_that_comes_second_changes_nothing(state: StateDirectory) -> None:
    desk, person = Desk(state), Person()

    async def deny_at_once(form: Form) -> Answer:
        await desk.queue.approve((await desk.one_waits()).id, by="page")
        return Answer(Reply.ACCEPTED, {form.questions[0].name: DENY})

    person.ask = deny_at_once  # type: ignore[method-assign]  # answers at once

    assert await desk.settled(write("/ws/a"), person) == "mode default, allowed once by the user"
    with pytest.raises(DecidedBefore, match="was approved before, by page"):
        await desk.queue.deny(desk.store.newest_first()[0].id, by="terminal")


async def test_one_approval_lets_one_of_two_identical_calls_run(state: StateDirectory) -> None:
    desk = Desk(state, wait_s=0.0)
    await desk.settled(write("/ws/a"))
    (waiting,) = await desk.queue.waiting()
    await desk.queue.approve(waiting.id, by="terminal")
    outcomes: list[str] = []

    async def run() -> None:
        outcomes.append(await desk.settled(write("/ws/a")))

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(run)

    assert sorted(outcome[:12] for outcome in outcomes) == [PENDING[:12]] * 3 + ["mode default"]


async def test_a_grant_for_the_session_from_elsewhere_holds_for_its_other_calls_and_for_no_other_session(
    state: StateDirectory,
) -> None:
    desk = Desk(state, wait_s=0.0)
    await desk.settled(write("/ws/a"))
    (waiting,) = await desk.queue.waiting()
    await desk.queue.approve(waiting.id, scope="session", by="page")

    others = [await desk.settled(write("/ws/a"), session_key="other") for _ in range(2)]
    assert others[0] == "mode default, allowed once by the user" and others[1].startswith(PENDING)
    assert await desk.settled(write("/ws/a")) == "rule Write(//ws/a)"
    assert await desk.settled(write("/ws/a")) == "rule Write(//ws/a)"


async def test_a_grant_for_the_session_is_not_for_the_same_session_name_of_another_process(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(state, wait_s=0.0)
    await desk.settled(write("/ws/a"))
    (waiting,) = await desk.queue.waiting()
    await desk.queue.approve(waiting.id, scope="session", by="page")
    assert await desk.settled(write("/ws/a")) == "rule Write(//ws/a)"

    monkeypatch.setattr("goat_mcp.processes.process_table.this_process", lambda: "1-1")
    assert await Desk(state, wait_s=0.0).settled(write("/ws/b")) != "rule Write(//ws/a)"
    assert await Desk(state, wait_s=0.0).permission.approvals.granted(ToolContext(call_id="c", principal="p")) == []


async def test_always_is_written_down_by_whoever_decides(state: StateDirectory) -> None:
    desk = Desk(state, wait_s=0.0)
    await desk.settled(write("/ws/a"))
    (waiting,) = await desk.queue.waiting()
    await desk.queue.approve(waiting.id, scope="always", by="terminal")

    assert await Desk(state).settled(write("/ws/a"), session_key="later") == "rule Write(//ws/a)"


async def test_a_rule_that_asks_is_lifted_once_and_never_for_longer(state: StateDirectory) -> None:
    desk = Desk(state, wait_s=0.0, rules=RuleSet.parse(ask=["Write"]))
    await desk.settled(write("/ws/a"))
    (waiting,) = await desk.queue.waiting()

    assert [choice.scope for choice in waiting.request.choices] == ["once"]
    with pytest.raises(ToolError, match="scope 'always' is not offered"):
        await desk.queue.approve(waiting.id, scope="always", by="terminal")


async def test_a_call_that_its_client_ends_waits_no_more(state: StateDirectory) -> None:
    desk = Desk(state)

    async with anyio.create_task_group() as group:
        group.start_soon(desk.settled, write("/ws/a"))
        await desk.one_waits()
        group.cancel_scope.cancel()

    assert [found.status for found in desk.store.newest_first()] == [Status.WITHDRAWN]


async def test_a_refusal_that_came_late_is_read_by_the_next_identical_call_and_then_forgotten(
    state: StateDirectory,
) -> None:
    desk = Desk(state, wait_s=0.0)
    await desk.settled(write("/ws/a"))
    (waiting,) = await desk.queue.waiting()
    await desk.queue.deny(waiting.id, reason="not this file", by="terminal")

    assert "not this file" in await desk.settled(write("/ws/a"))
    assert (await desk.settled(write("/ws/a"))).startswith(PENDING)


async def test_a_refusal_that_nobody_has_read_is_forgotten_in_time(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(state, wait_s=0.0)
    await desk.settled(write("/ws/a"))
    (waiting,) = await desk.queue.waiting()
    await desk.queue.deny(waiting.id, reason="not this file", by="terminal")
    monkeypatch.setattr("goat_mcp.calls.approvals.store.time.time", lambda: waiting.request.expires_at_s + 1)

    assert (await desk.settled(write("/ws/a"))).startswith(PENDING)


async def test_the_first_of_two_decisions_stands(state: StateDirectory) -> None:
    desk = Desk(state, wait_s=0.0)
    await desk.settled(write("/ws/a"))
    (waiting,) = await desk.queue.waiting()
    desk.store.decide(waiting.id, Verdict(approved=False, reason="no"), "page")

    with pytest.raises(DecidedBefore, match="was denied before, by page"):
        await desk.queue.approve(waiting.id, by="terminal")
    assert desk.store.find(waiting.id).status is Status.DENIED
