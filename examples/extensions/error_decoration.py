"""Error decoration: whoever runs into a missing file is told where this project keeps things."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from goat_mcp import CallNext, ToolContext, ToolResult, ToolSpec, text_block

HINT = "In this project sources are in src/ and their tests in spec/."


async def where_things_are(
    spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext
) -> ToolResult:
    result = await call_next(arguments)
    if result.error_code == "E_NOT_FOUND":
        return replace(result, content=(*result.content, text_block(HINT)))
    return result
