"""call_tool: call any tool of the catalog by name. The pipeline runs the named tool instead (DEF-3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.side_effect import Hints, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool


class CallTarget(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {
        "tool": "name",
        "tool_name": "name",
        "input": "arguments",
        "args": "arguments",
        "parameters": "arguments",
    }

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class CallTool(
    BuiltinTool[CallTarget],
    side_effect=SideEffect.NETWORK,
    toolset="meta",
    name="call_tool",
    title="Call a tool",
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=True),
):
    """Call a tool that search_tools found: its name, and the arguments its schema asks for.

    It is that tool's own call: its permissions hold, and its result comes back as it is.
    """

    examples = (
        ToolExample(
            "Comment on an issue",
            {"name": "mcp__github__add_comment", "arguments": {"issue": 7, "body": "Fixed."}},
        ),
    )

    async def execute(self, input: CallTarget, ctx: ToolContext) -> ToolResult:
        raise NotImplementedError("the pipeline runs the tool that is named, in place of this one")
