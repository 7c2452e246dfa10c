"""The tasks of clients that know the extension: calls become tasks, and tasks are read, answered and cancelled.

One principal knows its own only; a foreign id is as unknown as a made-up one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

from goat_mcp.commands.tasks.records import TASK_ID
from goat_mcp.commands.tasks.task import Task, TaskOutcome
from goat_mcp.core.context import WAIT_LIMIT_S
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.result import ToolResult, UpstreamTask
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.caller_identity import Caller
from goat_mcp.server.client_channel import Context
from goat_mcp.server.error_responses import refusal, relayed_error
from goat_mcp.server.requests import Requests, TaskAnswer
from goat_mcp.server.result_compatibility import downgraded_result, sanitized_result
from goat_mcp.server.suspended_call import SuspendedCall
from goat_mcp.server.tasks.call_task import CallTask
from goat_mcp.server.tasks.sealed_task import PREFIX, SealedTasks
from goat_mcp.server.tasks.task_ids import given_id, own_id
from goat_mcp.server.tasks.task_state import brings_result, result_of_output, task_state, with_times, without_payload

GRACE_S = 1.0
LOOK_EVERY_S, MOST_LOOK_S = 0.25, 30.0
_MAX_CHAINED = 3
"""A call that is a task may make itself another one, e.g. Bash."""
T = TypeVar("T")


def unknown_task() -> MCPError:
    return MCPError(types.INVALID_PARAMS, "no such task, or it has expired")


@dataclass(eq=False)
class ClientTasks:
    """`replica` is this server's name among several, empty if it is alone."""

    gateway: Gateway
    requests: Requests
    sealed: SealedTasks
    replica: Callable[[], str]

    def of_call(self, name: str, ctx: Context, caller: Caller) -> BecomingTask:
        after_s = self.gateway.settings.tasks.after_s
        # What our own tools answer at their own limit, they answer: Bash with a task that shows its output.
        grace_s = GRACE_S if after_s >= WAIT_LIMIT_S else 0
        return BecomingTask(self, name, ctx, caller, after_s + grace_s)

    async def state(self, wire_id: str, ctx: Context, caller: Caller) -> dict[str, Any]:
        """As `tasks/get` returns it. Raises `MCPError`."""
        found = await self._newest(wire_id, caller.principal)
        if isinstance(found, Task):
            outcome = found.work.outcome
            if outcome is None or not brings_result(outcome):
                return task_state(found, wire_id)
            result = outcome.result or await self._result_of_output(found, outcome, ctx)
            return task_state(found, wire_id, self._wire(result, ctx.protocol_version))
        upstreams = self.gateway.on_demand.upstream_tasks()
        state = await _there(upstreams.state(found, self.requests.context(ctx)))
        if "result" in state:
            state = {**state, "result": self._wire(state["result"], ctx.protocol_version)}
        return with_times({"taskId": wire_id, **state})

    async def answer(self, wire_id: str, answers: Mapping[str, Any], ctx: Context, caller: Caller) -> None:
        """Raises `MCPError`."""
        found = await self._newest(wire_id, caller.principal)
        if not isinstance(found, Task):
            upstreams = self.gateway.on_demand.upstream_tasks()
            await _there(upstreams.answer(found, answers, self.requests.context(ctx)))
        elif isinstance(found.work, CallTask):
            found.work.answer(answers)

    async def cancel(self, wire_id: str, ctx: Context, caller: Caller) -> None:
        """One that has ended is left alone. Raises `MCPError`."""
        found = await self._newest(wire_id, caller.principal)
        if not isinstance(found, Task):
            upstreams = self.gateway.on_demand.upstream_tasks()
            await _there(upstreams.cancel(found, self.requests.context(ctx)))
            return
        try:
            await self.gateway.services.tasks().stop(found)
        except ToolError as problem:
            raise refusal(problem) from None

    def look_every_s(self, wire_id: str, state: Mapping[str, Any]) -> float:
        """How often a stream looks whether this task has changed: one of an upstream as often as that wants."""
        if not wire_id.startswith(PREFIX):
            return LOOK_EVERY_S
        return min(MOST_LOOK_S, max(LOOK_EVERY_S, state.get("pollIntervalMs", 1000) / 1000))

    async def created(self, task_id: str, ctx: Context, caller: Caller) -> TaskAnswer:
        """What a call is answered with that goes on as this task."""
        task = await self._find(task_id, caller.principal)
        state = task_state(task, given_id(task.id, self.replica()))
        return TaskAnswer({"resultType": "task", **without_payload(state)})

    def relayed(self, task: UpstreamTask, caller: Caller) -> TaskAnswer:
        """What a call is answered with that its upstream goes on with."""
        wire_id = self.sealed.seal(task, caller.principal)
        return TaskAnswer({"resultType": "task", **with_times({"taskId": wire_id, **task.created})})

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

    async def _result_of_output(self, task: Task, outcome: TaskOutcome, ctx: Context) -> ToolResult:
        """The result of a command or an agent, which hooks see as they would have seen it in time."""
        context = self.requests.context(ctx)
        max_chars = context.setting("output.max_chars", self.gateway.settings.output.max_chars)
        result = result_of_output(task, outcome, max_chars)
        hooks = self.gateway.pipeline.hooks
        if not hooks:
            return result
        spec = self.gateway.builtin("Agent" if task.work.kind == "agent" else "Bash").spec
        return (await hooks.post_tool_use(spec, {"task_id": task.id}, result, context)).result

    def _wire(self, result: ToolResult, version: str) -> dict[str, Any]:
        answer = result.wire(structured_always=self.gateway.settings.output.structured == "always")
        return downgraded_result(sanitized_result(answer), version)

    async def _newest(self, wire_id: str, principal: str) -> Task | UpstreamTask:
        """The task of this id, or the one that it has made of itself. Raises `MCPError`."""
        if (of_upstream := self.sealed.open(wire_id, principal)) is not None:
            return of_upstream
        task = await self._find(own_id(wire_id), principal)
        for _ in range(_MAX_CHAINED):
            outcome = task.work.outcome
            if outcome is None or outcome.result is None:
                break
            if outcome.result.upstream_task is not None:
                return outcome.result.upstream_task
            if outcome.result.task_id is None:
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


async def _there(request: Awaitable[T]) -> T:
    """What an upstream is asked about its task. Raises `MCPError`."""
    from goat_mcp.gateway.upstream_tasks import TaskGone

    try:
        return await request
    except TaskGone:
        raise unknown_task() from None
    except ToolError as problem:
        raise refusal(problem) from None
    except UpstreamError as refused:
        raise relayed_error(refused) from None


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
        if started.upstream_task is not None:
            return self.tasks.relayed(started.upstream_task, self.caller)
        return await self.tasks.created(started.task_id or "", self.ctx, self.caller)
