"""search_tools: find tools by purpose if there are too many to list (DEF-2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from goat_mcp.catalog.search import CatalogSearch
from goat_mcp.catalog.search_answer import MOST_FOUND
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.names import UPSTREAM_PREFIX
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool

MAX_QUERY_CHARS = 1_000
_SHOWN_CHARS = 80
_NAMES_LISTED = 500
"""Far more than the answer holds."""


class SearchToolsInput(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {"q": "query", "max_results": "limit"}
    text_fields: ClassVar[frozenset[str]] = frozenset({"query"})

    query: str = Field(max_length=MAX_QUERY_CHARS)
    limit: Annotated[int, Field(ge=1)] = MOST_FOUND
    server: str | None = None


@dataclass(frozen=True)
class SearchTools(
    BuiltinTool[SearchToolsInput],
    side_effect=SideEffect.NONE,
    toolset="meta",
    name="search_tools",
    title="Search tools",
):
    """Find tools of the user's MCP servers by what they do. Most are not in your list: search before you give up.

    Say what you want done in plain words; an empty query with `server` lists its tools' names. Call what you find with
    call_tool: `?` marks what may be left out. describe_tool shows the whole schema if a signature is not enough.
    """

    examples = (
        ToolExample("By what is wanted", {"query": "comment on a pull request"}),
        ToolExample("All of a server", {"query": "", "server": "github"}),
    )

    search: CatalogSearch

    async def execute(self, input: SearchToolsInput, ctx: ToolContext) -> ToolResult:
        from goat_mcp.catalog.search_answer import found_facts, found_text, names_text

        server = (input.server or "").removeprefix(UPSTREAM_PREFIX)
        lists_names = not input.query.strip() and bool(server)
        most = min(input.limit, MOST_FOUND)
        limit = _NAMES_LISTED if lists_names else most
        found = await self.search.find(input.query, ctx, limit=limit, server=server)
        if server and server not in found.servers:
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"no server {cut_middle(server, _SHOWN_CHARS)!r} has tools here",
                f"Servers: {names_text(found.servers)}." if found.servers else "No server has tools now.",
            )
        facts: dict[str, Any] = {"tools": [], "total": found.total, "searched": found.searched}
        if not found.tools:
            quoted = cut_middle(input.query, _SHOWN_CHARS)
            servers = names_text(found.servers) or "none"
            text = f"No tool fits {quoted!r}, of {found.searched} searched. Servers: {servers}."
            return text_result(text, facts=facts)
        facts["tools"] = found_facts(found.tools[:most])
        if lists_names:
            return text_result(names_text([spec.name for spec in found.tools]), facts=facts)
        more = f"the best of {found.total} that fit; if none does, say it in other words or name a server"
        return text_result(found_text(found.tools), facts=facts, notices=[more] * (found.total > len(found.tools)))
