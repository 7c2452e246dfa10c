"""Calls that upstreams run for long: each becomes a background task, and its client has the task's id for an answer.

The call itself stays where it runs, with its permits, its clock and its connection: only its client is answered. So a
call that ends in time costs nothing: those that run are looked at when the time of the oldest is over (design D20).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace

from goat_mcp.calls.concurrency_limiter import CallLimiter, Permit
from goat_mcp.calls.long_call import LongCall
from goat_mcp.catalog.catalog import Resolver
from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.core.attended_work import AttendedWork
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError, UpstreamError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.spec import ToolSpec

AGAIN_AFTER_S = 1.0
"""When a call is looked at again that waits for a person, or for room for one more task."""
READERS = ("TaskOutput", "TaskStop")


class LongCalls:
    """Of one pipeline. A call whose client cannot read tasks, or is not to be answered early, goes on as it is."""

    def __init__(
        self,
        slots: CallLimiter,
        catalog: Resolver,
        tasks: Callable[[], TaskManager],
        *,
        after_s: float,
        again_after_s: float = AGAIN_AFTER_S,
    ) -> None:
        """`after_s`: how long a client waits."""
        self._slots = slots
        self._catalog = catalog
        self._tasks = tasks
        self._after_s = after_s
        self._again_after_s = again_after_s
        self._timer: asyncio.TimerHandle | None = None
        self._making: set[asyncio.Task[None]] = set()
        self._stays: set[Permit] = set()
        """Those that cannot become tasks."""
        self.attended = AttendedWork()
        """For whoever calls and can be answered early."""
        self.by_call_id: dict[str, LongCall] = {}
        """Those that have become tasks, or are about to."""
        slots.on_tool_elsewhere = self._begin

    def ended(self, call_id: str, result: ToolResult | None, refusal: UpstreamError | None) -> None:
        """A call of `by_call_id` has ended. It has neither a result nor a refusal if it was cancelled."""
        self.by_call_id.pop(call_id).end(result, refusal)

    def _begin(self) -> None:
        self._look_in(self._after_s)

    def _look_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Make tasks of those whose time is over, and look again when the next one's is."""
        self._timer, next_s = None, math.inf
        self._stays &= self._slots.permits
        for permit in [one for one in self._slots.permits if one.runs_elsewhere is not None]:
            if permit in self._stays or permit.ctx.call_id in self.by_call_id:
                continue
            if (left_s := permit.ctx.wait_left_s(self._after_s)) > 0:
                next_s = min(next_s, left_s)
            elif permit.is_asking:
                next_s = min(next_s, self._again_after_s)
            else:
                self._begin_to_make(permit)
        if next_s < math.inf:
            self._look_in(next_s)
        else:
            self._slots.on_tool_elsewhere = self._begin

    def _begin_to_make(self, permit: Permit) -> None:
        # Known from now on: the call may end before its task is there.
        self.by_call_id[permit.ctx.call_id] = call = LongCall(permit)
        making = asyncio.get_running_loop().create_task(self._make(permit, call))
        self._making.add(making)
        making.add_done_callback(self._making.discard)

    async def _make(self, permit: Permit, call: LongCall) -> None:
        ctx, runs = permit.ctx, permit.runs_elsewhere
        if runs is None or not self._can_read_tasks(ctx):
            self._leave_alone(permit)
            return
        tasks = self._tasks()
        try:
            task = await tasks.adopt(call, principal=ctx.principal, session_key=ctx.session_key)
        except ToolError:  # there is no room for one more
            self.by_call_id.pop(ctx.call_id, None)
            self._try_again()
            return
        has_ended, is_asking = call.outcome is not None, permit.is_asking
        answer = None if has_ended or is_asking else ctx.leave_client(ctx.call_id)
        if answer is None:
            if is_asking:
                self.by_call_id.pop(ctx.call_id, None)
                self._try_again()
            else:
                self._leave_alone(permit)
            call.withdraw()
            await tasks.forget(task)
            return
        permit.leave(call.heard)
        await answer(started(task.id, runs, call.seconds))

    def _leave_alone(self, permit: Permit) -> None:
        self.by_call_id.pop(permit.ctx.call_id, None)
        self._stays.add(permit)

    def _try_again(self) -> None:
        self._slots.on_tool_elsewhere = None
        self._look_in(self._again_after_s)

    def _can_read_tasks(self, ctx: ToolContext) -> bool:
        catalog = self._catalog.of(ctx.rights)
        try:
            specs = [catalog.resolve(name).spec for name in READERS]
        except ToolError:
            return False
        return all(ctx.rights.permits(spec.rule_name, spec.name) for spec in specs)


def started(task_id: str, runs: ToolSpec, seconds: float) -> ToolResult:
    """What the client is answered. Where it was promised an object, it is an error: clients refuse any other result
    without that object."""
    notices = [
        f"{runs.name} is still running after {seconds:.0f} s and goes on; do not call it again for this",
        "TaskOutput waits for its result, TaskStop cancels it; nobody can be asked for it any more",
    ]
    facts = {"task_id": task_id, "task_type": LongCall.kind, "status": "running", "output_file": None}
    handle = text_result(f"Task started: {task_id}", facts=facts, notices=notices, task_id=task_id)
    return handle if runs.output_schema is None else replace(handle, is_error=True)
