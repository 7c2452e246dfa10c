"""call_tool_readonly: `call_tool` for tools that only read, so that a host need not ask (DEF-2).

`goat_mcp.calls.meta_call` decides which those are.
"""

from __future__ import annotations

from dataclasses import dataclass

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.side_effect import Hints, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.tools.call_tool import CallTarget


@dataclass(frozen=True)
class CallToolReadonly(
    BuiltinTool[CallTarget],
    side_effect=SideEffect.READ_ONLY,
    toolset="meta",
    name="call_tool_readonly",
    title="Call a tool that only reads",
    hints=Hints(read_only=True, destructive=False, idempotent=False, open_world=True),
):
    """Like call_tool, for tools that the user trusts to only read; it refuses all others. Try it first for reading."""

    examples = (ToolExample("Read an issue", {"name": "mcp__github__get_issue", "arguments": {"number": 7}}),)

    async def execute(self, input: CallTarget, ctx: ToolContext) -> ToolResult:
        raise NotImplementedError("the pipeline runs the tool that is named, in place of this one")
