"""`goat://tasks` and `goat://tasks/ID`: background tasks and their output, for clients that subscribe."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from goat_mcp.commands.tasks.manager import TASKS_URI, TaskManager
from goat_mcp.commands.tasks.task import Task
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.resources import Reading, json_entry, json_reading, last_part, template

_TITLE_CHARS = 2000


class TaskResources:
    entries = (json_entry(TASKS_URI, "tasks", "Your background tasks, newest first: what they are and how they do"),)
    templates = (template(f"{TASKS_URI}/{{id}}", "task", "One background task: status and output", "application/json"),)

    def __init__(self, tasks: TaskManager, max_chars: int) -> None:
        """`max_chars` bounds the output of a task that one reading shows: its head and tail."""
        self._tasks = tasks
        self._max_chars = max_chars

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        if uri == TASKS_URI:
            tasks = await self._tasks.known(ctx.principal)
            return json_reading({"tasks": [_described(task) for task in tasks]})
        task_id = last_part(uri, f"{TASKS_URI}/")
        if task_id is None:
            return None
        try:
            task = await self._tasks.find(task_id, ctx.principal)
        except ToolError:
            return None
        if task.id != task_id:
            return None  # found by a name, under which no change is announced
        part = task.work.output(self._max_chars, 0)
        return json_reading({**_described(task), "output": part.text, "truncated": part.truncated})


def _described(task: Task) -> dict[str, Any]:
    outcome = task.work.outcome
    path = task.work.output_file
    return {
        "id": task.id,
        "uri": f"{TASKS_URI}/{task.id}",
        "kind": task.work.kind,
        "title": task.work.title[:_TITLE_CHARS],
        "status": str(task.status),
        "exit_code": None if outcome is None else outcome.exit_code,
        "reason": "" if outcome is None else outcome.reason,
        "started_at": datetime.fromtimestamp(task.started_at_s, UTC).isoformat(timespec="seconds"),
        "seconds": round(task.work.seconds, 1),
        "output_file": None if path is None else str(path),
    }
