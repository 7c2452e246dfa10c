"""Validation: an issue whose title says nothing is sent back before anybody sees it."""

from collections.abc import Mapping
from typing import Any

from goat_mcp import CallNext, ErrorCode, ToolContext, ToolError, ToolResult, ToolSpec

MIN_WORDS = 3


async def telling_titles(
    spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext
) -> ToolResult:
    if spec.rule_name.endswith("__create_issue") and len(str(arguments.get("title", "")).split()) < MIN_WORDS:
        raise ToolError(ErrorCode.INPUT, f"title: wants at least {MIN_WORDS} words", "Say what is wrong, and where.")
    return await call_next(arguments)
