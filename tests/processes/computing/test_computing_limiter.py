"""Permits for computations: who gets the next one, how long anybody waits, what is told where there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.computing.worker_process import ComputingLimiter
from tests.manifests.calling import Caller
from tests.manifests.declared import eventually
from tests.own_process import children

pytestmark = pytest.mark.anyio

BOUND_S = 60.0


def caller(name: str) -> ToolContext:
    """`ann/2` is the second session of ann."""
    principal, _, session = name.partition("/")
    return ToolContext(call_id="c", principal=principal, session_key=session or principal)


@dataclass
class Computing:
    """Holds limiter for callers until they are let go, and notes who came in."""

    limiter: ComputingLimiter
    group: anyio.abc.TaskGroup
    came: list[str] = field(default_factory=list[str])
    _leave: dict[str, list[anyio.Event]] = field(default_factory=dict[str, "list[anyio.Event]"])

    async def begins(self, *names: str) -> None:
        for name in names:
            self.group.start_soon(self._hold, name)
            await anyio.wait_all_tasks_blocked()

    async def ends(self, name: str) -> None:
        self._leave[name].pop(0).set()
        await anyio.wait_all_tasks_blocked()

    async def _hold(self, name: str) -> None:
        async with self.limiter.permit(caller(name), "the query"):
            self.came.append(name)
            leave = anyio.Event()
            self._leave.setdefault(name, []).append(leave)
            await leave.wait()


async def test_one_principal_leaves_a_place_for_the_next() -> None:
    came: list[str] = []
    async with anyio.create_task_group() as group:
        computing = Computing(ComputingLimiter(4, 3), group, came)
        await computing.begins(*["ann"] * 10, "bob")
        group.cancel_scope.cancel()

    assert came == ["ann", "ann", "ann", "bob"]


async def test_a_free_place_goes_round_whoever_was_first_with_much() -> None:
    came: list[str] = []
    async with anyio.create_task_group() as group:
        computing = Computing(ComputingLimiter(2, 2), group, came)
        await computing.begins("ann", "ann", "ann", "ann", "bob", "bob", "cem")
        for name in ("ann", "ann", "bob", "cem"):
            await computing.ends(name)
        group.cancel_scope.cancel()

    assert came == ["ann", "ann", "bob", "cem", "ann", "bob"]


async def test_so_do_limiter_among_sessions_of_one_principal() -> None:
    came: list[str] = []
    async with anyio.create_task_group() as group:
        computing = Computing(ComputingLimiter(2, 2), group, came)
        await computing.begins("ann/1", "ann/1", "ann/1", "ann/1", "ann/2")
        await computing.ends("ann/1")
        group.cancel_scope.cancel()

    assert came == ["ann/1", "ann/1", "ann/2"]


async def test_who_waits_too_long_is_told_and_holds_up_nobody() -> None:
    limiter = ComputingLimiter(1, 1, queue_s=0.05)
    async with limiter.permit(caller("ann"), "the query"):
        with pytest.raises(ToolError) as of_ann:
            async with limiter.permit(caller("ann"), "the query"):
                pass
        with pytest.raises(ToolError) as of_bob:
            async with limiter.permit(caller("bob"), "the query"):
                pass
    async with limiter.permit(caller("bob"), "the query"):
        pass

    assert of_ann.value.code == of_bob.value.code == ErrorCode.BUSY
    assert of_ann.value.message == (
        "the query had no turn within 0.05 s: 1 of your computations run, and others are waiting"
    )
    assert of_bob.value.message == (
        "the query had no turn within 0.05 s: computations of other clients run, and others are waiting"
    )
    assert of_ann.value.facts == {"retry_after_s": 2}


async def test_who_is_cancelled_gives_the_place_back() -> None:
    limiter = ComputingLimiter(1, 1)
    async with anyio.create_task_group() as group:
        computing = Computing(limiter, group)
        await computing.begins("ann", "bob")
        group.cancel_scope.cancel()

    with anyio.fail_after(BOUND_S):
        async with limiter.permit(caller("cem"), "the query"):
            pass


SLOW = {"text": "a" * 40 + "!", "operations": [{"op": "regex", "pattern": "(a+)+$"}]}


async def test_a_principal_who_asks_for_much_holds_up_nobody_with_either_tool(tmp_path: Path) -> None:
    on = Caller(tmp_path)
    done: list[str] = []

    async def call(principal: str, tool: str, **arguments: Any) -> None:
        ctx = ToolContext(call_id="c", principal=principal, session_key=principal)
        await on.gateway.call(tool, arguments, ctx)
        done.append(principal)

    with anyio.fail_after(BOUND_S):
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(lambda: call("ann", "text-transform__transform", **SLOW))
            await eventually(lambda: len(children()) >= 3)
            await call("bob", "text-transform__transform", text="x", operations=[{"op": "trim"}])
            await call("bob", "json-query__query", data={"a": 1}, query="a")

    assert done[:2] == ["bob", "bob"]
