"""TaskOutput: how a background task is doing and what it printed. Tasks themselves live in `commands.tasks`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import Field

from goat_mcp.commands.tasks import Task, TaskManager, TaskOutcome
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.heartbeat import HEARTBEAT_S
from goat_mcp.core.result import FACTS_META_KEY, ToolResult, error_result, text_block, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool

MAX_CHARS = 30_000
_HEADER_CHARS = 1_000


class TaskOutputInput(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {"shell_id": "task_id", "bash_id": "task_id"}

    task_id: str
    block: bool = Field(True, description="Wait for the task's end")
    timeout: int = Field(30_000, ge=0, le=600_000, description="Milliseconds to wait; 45 s at most")


@dataclass(frozen=True)
class TaskOutput(
    BuiltinTool[TaskOutputInput],
    side_effect=SideEffect.READ_ONLY,
    toolset="tasks",
    title="Read a background task",
    max_result_chars=MAX_CHARS,
):
    """Show a background task's status and output: while it runs what is new since your last call, then all of it."""

    examples = (
        ToolExample("What is new, without waiting", {"task_id": "rdom6cxnuu2zfwckdnxlaa7teodtiine", "block": False}),
        ToolExample("Wait ten seconds for its end", {"task_id": "rdom6cxnuu2zfwckdnxlaa7teodtiine", "timeout": 10_000}),
    )

    tasks: TaskManager
    max_chars: int = MAX_CHARS

    async def execute(self, input: TaskOutputInput, ctx: ToolContext) -> ToolResult:
        task = await self.tasks.find(input.task_id, ctx.principal)
        if input.block:
            await _wait(task, min(input.timeout / 1000, ctx.wait_left_s()), ctx)
        outcome = task.work.outcome
        max_chars = ctx.setting("output.max_chars", self.max_chars) - _HEADER_CHARS
        if outcome is None:
            part = task.new_output(ctx.session_key, max_chars)
            nothing = "(no new output)"
        else:
            part = task.work.output(max_chars, 0)
            nothing = "(no output)"
        status = str(task.status)
        header = [f"Task {task.id}: {status}"]
        if outcome is not None and outcome.exit_code is not None:
            header.append(f"exit code {outcome.exit_code}")
        if outcome is not None and outcome.reason:
            header.append(outcome.reason)
        header.append(f"{task.work.seconds:.1f} s")
        path = task.work.output_file
        facts = {
            "task_id": task.id,
            "task_type": task.work.kind,
            "status": status,
            "exit_code": None if outcome is None else outcome.exit_code,
            "output_file": None if path is None else str(path),
        }
        if outcome is not None and (whole := _result_of(outcome)) is not None:
            return _under(", ".join(header), whole, facts)
        notices = [] if path is None else [f"output file: {path}"]
        return text_result(f"{', '.join(header)}\n{part.text or nothing}", facts=facts, notices=notices)


def _result_of(outcome: TaskOutcome) -> ToolResult | None:
    """What the call returned that became the task; None for work that is no call."""
    if outcome.error is not None:
        return error_result(ToolError(ErrorCode.UPSTREAM, outcome.reason))
    return outcome.result


def _under(header: str, result: ToolResult, facts: Mapping[str, Any]) -> ToolResult:
    """The result as it is, with a line above it."""
    content = (text_block(header), *result.content)
    return replace(result, content=content, meta={**result.meta, FACTS_META_KEY: dict(facts)}, is_relayed=True)


async def _wait(task: Task, timeout_s: float, ctx: ToolContext) -> None:
    left_s = timeout_s
    while not await task.work.wait(min(left_s, HEARTBEAT_S) if ctx.wants_progress else left_s):
        left_s -= HEARTBEAT_S
        if left_s <= 0 or not ctx.wants_progress:
            return
        await ctx.progress(task.work.seconds, None, f"{task.work.title[:100]} is running")
