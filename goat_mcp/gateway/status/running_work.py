"""What runs in this process: calls that take longer than a moment, and background tasks. The user may end either."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from goat_mcp.calls.audit import AuditLog
from goat_mcp.calls.concurrency_limiter import CallLimiter, Permit
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import cut_middle

if TYPE_CHECKING:  # loaded with the first task
    from goat_mcp.commands.tasks.manager import TaskManager
    from goat_mcp.commands.tasks.task import Task

SHOWN_AFTER_S = 1.0
CANCEL = "cancel"
"""How the record of calls names what the user ends."""
MAX_SHOWN = 200
_MAX_CHARS = 300


class RunningWork:
    """Nothing is kept of a call but what the call needs itself: whoever asks looks at those that run."""

    def __init__(self, slots: CallLimiter, tasks: Callable[[], TaskManager | None], audit: AuditLog) -> None:
        """`tasks` has none as long as no call has needed any."""
        self._slots = slots
        self._tasks = tasks
        self._audit = audit

    def shown(self) -> list[dict[str, Any]]:
        """The oldest first: `kind` (`call`, or that of a task), `id`, `tool`, `title`, `client`, `principal`,
        `started_s` since 1970, and of calls the last `progress`: `done`, `total`, `message`. With what may be secret.
        """
        found = [*map(_call, self._calls()), *map(_task, self._running_tasks())]
        return sorted(found, key=lambda one: one["started_s"])[:MAX_SHOWN]

    def mark(self) -> object:
        """Another one if `shown` has changed. Costs next to nothing while nothing runs."""
        calls = frozenset((permit.ctx.call_id, permit.progress) for permit in self._calls())
        return calls, frozenset(task.id for task in self._running_tasks())

    async def cancel(self, id: str) -> dict[str, Any] | None:
        """End a call or a task, and record that the user did it. None if nothing of this id runs here."""
        permit = next((one for one in self._slots.permits if one.ctx.call_id == id), None)
        if permit is not None:
            await self._record(permit.tool, permit.ctx.principal, id)
            permit.cancel()
            return _call(permit)
        tasks = self._tasks()
        task = next((one for one in self._running_tasks() if one.id == id), None)
        if tasks is None or task is None:
            return None
        shown = _task(task)
        await self._record("", task.principal, id)
        await tasks.stop(task)
        return shown

    async def _record(self, tool: str, principal: str, id: str) -> None:
        what = {"call_id": id, "tool": tool} if tool else {"task_id": id}
        ctx = ToolContext(call_id=f"{CANCEL}-{id}", principal=principal, client_name="goat-mcp")
        rule = "the user ended it"
        await self._audit.off_loop(
            partial(self._audit.decision, CANCEL, what, ctx, decision="allow", rule=rule, by="user", changes=False)
        )
        await self._audit.off_loop(partial(self._audit.outcome, CANCEL, ctx, error_code=None))

    def _calls(self) -> Iterator[Permit]:
        before_s = time.monotonic() - SHOWN_AFTER_S
        return (permit for permit in self._slots.permits if permit.ctx.started_at_s <= before_s)

    def _running_tasks(self) -> list[Task]:
        tasks = self._tasks()
        return tasks.running() if tasks is not None else []


def _call(permit: Permit) -> dict[str, Any]:
    ctx, progress = permit.ctx, permit.progress
    message = cut_middle(progress.message, _MAX_CHARS) if progress is not None and progress.message else ""
    return {
        "kind": "call",
        "id": ctx.call_id,
        "tool": permit.tool,
        "title": "",
        "client": cut_middle(ctx.client_name, _MAX_CHARS),
        "principal": ctx.principal,
        "started_s": _rounded(time.time() - (time.monotonic() - ctx.started_at_s)),
        "progress": None if progress is None else {"done": progress.done, "total": progress.total, "message": message},
    }


def _task(task: Task) -> dict[str, Any]:
    return {
        "kind": task.work.kind,
        "id": task.id,
        "tool": "",
        "title": cut_middle(task.name or " ".join(task.work.title.split()), _MAX_CHARS),
        "client": "",
        "principal": task.principal,
        "started_s": _rounded(task.started_at_s),
        "progress": None,
    }


def _rounded(at_s: float) -> float:
    """The same each time, though two clocks are read."""
    return round(at_s, 1)
