"""Access control: what changes something outside this machine waits for office hours."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from goat_mcp import CallNext, ErrorCode, ToolContext, ToolError, ToolResult, ToolSpec


def office_is_open(now: datetime) -> bool:
    return now.weekday() < 5 and 9 <= now.hour < 17


async def office_hours(
    spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext
) -> ToolResult:
    if spec.rule_name.startswith("mcp__") and not spec.hints.read_only and not office_is_open(datetime.now()):
        raise ToolError(
            ErrorCode.PERMISSION, f"{spec.rule_name} runs from 9 to 17 o'clock on weekdays", "Leave it for tomorrow."
        )
    return await call_next(arguments)
