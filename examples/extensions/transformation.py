"""Transformation: searches leave out the generated folder unless they name it."""

from collections.abc import Mapping
from typing import Any

from goat_mcp import CallNext, ToolContext, ToolResult, ToolSpec


async def skip_generated(
    spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext
) -> ToolResult:
    if spec.rule_name == "Grep" and "glob" not in arguments:
        arguments = {**arguments, "glob": "!generated/**"}
    return await call_next(arguments)
