"""describe_tool: the whole definition of one tool, as a list would show it (DEF-2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.script_functions import script_functions
from goat_mcp.catalog.search import CatalogSearch
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import DESCRIBE_TOOL, RUN_SCRIPT
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool


class DescribeToolInput(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {"tool": "name", "tool_name": "name"}

    name: str


@dataclass(frozen=True)
class DescribeTool(
    BuiltinTool[DescribeToolInput],
    side_effect=SideEffect.NONE,
    toolset="meta",
    name=DESCRIBE_TOOL,
    title="Describe a tool",
):
    """Show a tool's whole definition: description, input and output schema, hints. Name it as search_tools does."""

    examples = (ToolExample("Before its first call", {"name": "mcp__github__create_issue"}),)

    catalog: Catalog
    search: CatalogSearch

    async def execute(self, input: DescribeToolInput, ctx: ToolContext) -> ToolResult:
        catalog = self.catalog.of(ctx.rights)
        spec = catalog.resolve(input.name).spec
        if not self.search.shows(spec, ctx):
            raise ToolError(
                ErrorCode.PERMISSION,
                f"{spec.name} may not be called here",
                "Search for another tool.",
                facts={"tool": spec.rule_name},
            )
        shown = {**spec.wire(), "risk": spec.risk.name.lower()}
        if RUN_SCRIPT in catalog.shown():
            functions = script_functions(self.catalog, ctx.rights)
            name = next((name for name, other in functions.items() if other.name == spec.name), None)
            if name is not None and name != spec.name:
                shown["functionInScripts"] = name
        return text_result(json.dumps(shown, ensure_ascii=False))
