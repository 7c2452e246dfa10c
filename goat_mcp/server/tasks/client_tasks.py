"""The tasks of clients that know the extension: calls become tasks, and tasks are read, answered and cancelled.

One principal knows its own only; a foreign id is as unknown as a made-up one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from goat_mcp.commands.tasks.records import TASK_ID
from goat_mcp.commands.tasks.task import Task
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.caller_identity import Caller
from goat_mcp.server.client_channel import Context
from goat_mcp.server.error_responses import refusal
from goat_mcp.server.requests import TaskAnswer
from goat_mcp.server.result_compatibility import downgraded_result, sanitized_result
from goat_mcp.server.suspended_calls import SuspendedCall
from goat_mcp.server.tasks.call_task import CallTask
from goat_mcp.server.tasks.task_state import task_state, without_payload

LOOK_EVERY_S = 0.25
_MAX_CHAINED = 3
"""A call that is a task may make itself another one, e.g. Bash."""


def unknown_task() -> MCPError:
    return MCPError(types.INVALID_PARAMS, "no such task, or it has expired")


@dataclass(eq=False)
class ClientTasks:
    """`replica` is this server's name among several, empty if it is alone."""

    gateway: Gateway
    replica: Callable[[], str]

    def of_call(self, name: str, ctx: Context, caller: Caller) -> BecomingTask:
        return BecomingTask(self, name, ctx, caller, self.gateway.settings.tasks.after_s)

    async def state(self, wire_id: str, ctx: Context, caller: Caller) -> dict[str, Any]:
        """As `tasks/get` returns it. Raises `MCPError`."""
        return self._state(await self._newest(wire_id, caller.principal), wire_id, ctx)

    async def answer(self, wire_id: str, answers: Mapping[str, Any], ctx: Context, caller: Caller) -> None:
        """Raises `MCPError`."""
        work = (await self._newest(wire_id, caller.principal)).work
        if isinstance(work, CallTask):
            work.answer(answers)

    async def cancel(self, wire_id: str, ctx: Context, caller: Caller) -> None:
        """One that has ended is left alone. Raises `MCPError`."""
        task = await self._newest(wire_id, caller.principal)
        try:
            await self.gateway.services.tasks().stop(task)
        except ToolError as problem:
            raise refusal(problem) from None

    def look_every_s(self, wire_id: str, state: Mapping[str, Any]) -> float:
        """How often a stream looks whether this task has changed."""
        return LOOK_EVERY_S

    async def created(self, task_id: str, ctx: Context, caller: Caller) -> TaskAnswer:
        """What a call is answered with that goes on as this task."""
        task = await self._find(task_id, caller.principal)
        state = self._state(task, self._wire_id(task.id), ctx)
        return TaskAnswer({"resultType": "task", **without_payload(state)})

    async def adopt(self, call: SuspendedCall, name: str, ctx: Context, caller: Caller) -> TaskAnswer | None:
        """Go on with a call as a task; None if there are too many tasks already."""
        tasks = self.gateway.services.tasks()
        try:
            tasks.check_room()
            work = CallTask(call, name)
            task = await tasks.adopt(work, principal=caller.principal, session_key=caller.session_key)
        except ToolError:
            return None
        return await self.created(task.id, ctx, caller)

    def _state(self, task: Task, wire_id: str, ctx: Context) -> dict[str, Any]:
        wire = partial(self._wire, version=ctx.protocol_version)
        return task_state(task, wire_id, self.gateway.settings.output.max_chars, wire)

    def _wire(self, result: ToolResult, *, version: str) -> dict[str, Any]:
        answer = result.wire(structured_always=self.gateway.settings.output.structured == "always")
        return downgraded_result(sanitized_result(answer), version)

    async def _newest(self, wire_id: str, principal: str) -> Task:
        """The task of this id, or the one that it has made of itself. Raises `MCPError`."""
        task = await self._find(_own_id(wire_id), principal)
        for _ in range(_MAX_CHAINED):
            outcome = task.work.outcome
            if outcome is None or outcome.result is None or outcome.result.task_id is None:
                break
            task = await self._find(outcome.result.task_id, principal)
        return task

    async def _find(self, task_id: str, principal: str) -> Task:
        if not TASK_ID.match(task_id):
            raise unknown_task()
        try:
            task = await self.gateway.services.tasks().find(task_id, principal)
        except ToolError as problem:
            raise unknown_task() if problem.code is ErrorCode.TASK_UNKNOWN else refusal(problem) from None
        if task.id != task_id:
            raise unknown_task()  # found by a name that its starter gave it
        return task

    def _wire_id(self, task_id: str) -> str:
        replica = self.replica()
        return f"{task_id}.{replica}" if replica else task_id


@dataclass(frozen=True)
class BecomingTask:
    """A `CallAsTask`."""

    tasks: ClientTasks
    name: str
    ctx: Context
    caller: Caller
    after_s: float

    async def take_over(self, call: SuspendedCall) -> TaskAnswer | None:
        return await self.tasks.adopt(call, self.name, self.ctx, self.caller)

    async def answer(self, started: ToolResult) -> TaskAnswer:
        return await self.tasks.created(started.task_id or "", self.ctx, self.caller)


def _own_id(wire_id: str) -> str:
    """Without the replica that gave it."""
    return wire_id.partition(".")[0]


def replica_of_task(wire_id: str) -> str:
    """The replica that gave this id, by its own word; empty if it names none."""
    own_id, _, replica = wire_id.partition(".")
    return replica if TASK_ID.match(own_id) else ""
