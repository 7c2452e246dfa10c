"""search_tools: find tools by purpose if there are too many to list (DEF-2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from goat_mcp.catalog.filter import server_of
from goat_mcp.catalog.search import CatalogSearch, FoundTools
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.names import UPSTREAM_PREFIX
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool

LIMIT = 8
MAX_LIMIT = 50
MAX_QUERY_CHARS = 1_000
_SHOWN_CHARS = 80
_SERVERS_SHOWN = 40


class SearchToolsInput(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {"q": "query", "max_results": "limit"}
    text_fields: ClassVar[frozenset[str]] = frozenset({"query"})

    query: str = Field(max_length=MAX_QUERY_CHARS)
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = LIMIT
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

    Say what you want done in plain words; an empty query with `server` lists that server's tools. Call what you find
    with call_tool; describe_tool shows its whole schema.
    """

    examples = (
        ToolExample("By what is wanted", {"query": "comment on a pull request"}),
        ToolExample("All of a server", {"query": "", "server": "github", "limit": 50}),
    )

    search: CatalogSearch

    async def execute(self, input: SearchToolsInput, ctx: ToolContext) -> ToolResult:
        from goat_mcp.catalog.search import summary_text, tool_summary

        server = (input.server or "").removeprefix(UPSTREAM_PREFIX)
        found = await self.search.find(input.query, ctx, limit=input.limit, server=server)
        if server and server not in found.servers:
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"no server {cut_middle(server, _SHOWN_CHARS)!r} has tools here",
                f"There are {_named(found)}." if found.servers else "No server has tools now.",
            )
        shown = [tool_summary(spec, server_of(spec)) for spec in found.tools]
        facts: dict[str, Any] = {"tools": shown, "total": found.total, "searched": found.searched}
        notices = [f"{len(shown)} of {found.total} that fit; a higher limit shows more"] * (found.total > len(shown))
        if not shown:
            quoted = cut_middle(input.query, _SHOWN_CHARS)
            text = f"No tool fits {quoted!r}, of {found.searched} searched. Servers: {_named(found) or 'none'}."
            return text_result(text, facts=facts)
        return text_result("\n".join(map(summary_text, shown)), facts=facts, notices=notices)


def _named(found: FoundTools) -> str:
    more = len(found.servers) - _SERVERS_SHOWN
    return ", ".join(found.servers[:_SERVERS_SHOWN]) + (f" and {more} more" if more > 0 else "")
