"""show_catalog: which tools this client has and what their definitions cost, for hosts that show it as an MCP App."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goat_mcp.catalog.catalog import Catalog, ListedTool
from goat_mcp.catalog.filter import server_of, token_cost
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.names import CATALOG_APP
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool

_OURS = "goat-mcp"


class ShowCatalogInput(ToolInput):
    """It has nothing to choose from."""


@dataclass(frozen=True)
class ShowCatalog(
    BuiltinTool[ShowCatalogInput],
    side_effect=SideEffect.NONE,
    toolset="apps",
    name="show_catalog",
    title="Show the catalog of tools",
    meta={"ui": {"resourceUri": CATALOG_APP, "visibility": ["model", "app"]}},
):
    """Show the user which tools there are, by server, and what each costs in tokens. For the user, not for you: you
    have the list."""

    examples = (ToolExample("All of it", {}),)

    catalog: Catalog

    async def execute(self, input: ShowCatalogInput, ctx: ToolContext) -> ToolResult:
        catalog = self.catalog.of(ctx.rights)
        servers: dict[str, list[ListedTool]] = {}
        for tool in catalog.shown().values():
            servers.setdefault(server_of(tool.spec) or _OURS, []).append(tool)
        deferred = frozenset(tool.spec.name for tool in catalog.deferred())
        shown = [_server(name, tools, deferred) for name, tools in servers.items()]
        structured = {
            "servers": shown,
            "tools": sum(len(server["tools"]) for server in shown),
            "tokens": sum(server["tokens"] for server in shown),
            "deferred": len(deferred),
        }
        return ToolResult(content=(text_block(_text(structured)),), structured=structured)


def _server(name: str, tools: Sequence[ListedTool], deferred: frozenset[str]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [
        {
            "name": tool.spec.name,
            "title": tool.spec.title,
            "tokens": token_cost(tool.entry),
            "risk": tool.spec.risk.name.lower(),
            "changes": not tool.spec.hints.read_only,
        }
        for tool in tools
    ]
    return {
        "name": name,
        "tokens": sum(row["tokens"] for row in rows),
        "is_listed": not any(tool.spec.name in deferred for tool in tools),
        "tools": rows,
    }


def _text(found: Mapping[str, Any]) -> str:
    more = f"; {found['deferred']:,} of them are found by search instead of being listed" if found["deferred"] else ""
    lines = [f"{found['tools']:,} tools, {found['tokens']:,} tokens{more}."]
    for server in found["servers"]:
        lines += ["", f"{server['name']}: {len(server['tools']):,} tools, {server['tokens']:,} tokens"]
        lines += [f"  {row['name']} · {row['tokens']:,} tokens · risk {row['risk']}" for row in server["tools"]]
    return "\n".join(lines)
