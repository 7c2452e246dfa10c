"""TaskStop: end a background task. Tasks themselves live in `goat_mcp.commands.tasks`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from goat_mcp.commands.tasks import TaskManager, TaskStatus
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.coercion import Problem
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import cut_middle
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool

MAX_OUTPUT_CHARS = 10_000
_TITLE_CHARS = 200


class TaskStopInput(ToolInput):
    task_id: str | None = None
    shell_id: str | None = None

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> Iterable[Problem]:
        ids = {arguments[name] for name in ("task_id", "shell_id") if isinstance(arguments.get(name), str)}
        if not ids:
            yield "task_id", "is required"
        if len(ids) > 1:
            yield "shell_id", "is the old name of task_id, which came with a different value; send one"


@dataclass(frozen=True)
class TaskStop(
    BuiltinTool[TaskStopInput], side_effect=SideEffect.BLOCKING, toolset="tasks", title="Stop a background task"
):
    """Stop a background task and all it started; returns the output you had not read yet."""

    examples = (ToolExample("End a task", {"task_id": "rdom6cxnuu2zfwckdnxlaa7teodtiine"}),)

    tasks: TaskManager

    async def execute(self, input: TaskStopInput, ctx: ToolContext) -> ToolResult:
        task = await self.tasks.find(input.task_id or input.shell_id or "", ctx.principal)
        title = cut_middle(" ".join(task.work.title.split()), _TITLE_CHARS)
        was_running = task.status is TaskStatus.RUNNING
        notices: list[str] = []
        if was_running:
            await self.tasks.stop(task)
            lines = [f"Stopped task {task.id} ({title})."]
            if (outcome := task.work.outcome) is not None and outcome.reason:
                notices.append(outcome.reason)
            unread = task.new_output(ctx.session_key, MAX_OUTPUT_CHARS).text
            if unread:
                lines.append(unread)
        else:
            lines = [f"Task {task.id} ({title}) is not running."]
            notices.append(f"it has ended already: {task.status}")
        facts = {
            "task_id": task.id,
            "task_type": task.work.kind,
            "command": task.work.title,
            "status": str(task.status),
        }
        return text_result("\n".join(lines), facts=facts, notices=notices)
