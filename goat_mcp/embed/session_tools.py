"""The tools of an MCP client session of your own, as tools of a registry. Source: Goat `RegisterMCPTool`; Shelly
`mcpclient`.

A server that goat-mcp starts and watches itself is an entry of `upstreams`; this is for a session that you have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.names import clean_server_name
from goat_mcp.core.result import ToolResult
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.listing.proxy_tool import UpstreamSpec, UpstreamTool, upstream_tool

if TYPE_CHECKING:  # who has a session has loaded it
    from mcp import Client, ClientSession

_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)


async def mcp_tools(server: str, session: Client | ClientSession) -> tuple[UpstreamTool, ...]:
    """What the session's server lists now, each tool named `mcp__SERVER__TOOL`. Calls go to it while the session lasts.

    Risk and hints are judged as those of any upstream. A tool that no client could use is left out. Raises
    `InvalidName` for a server's name without a letter or digit, and what the session raises.
    """
    from goat_mcp.upstreams.listing.entry_validation import valid_entries

    config = UpstreamConfig(name=server, server=clean_server_name(server), target=StdioLaunch(""))
    relay = _SessionCalls(config.server, session)
    entries = valid_entries(await _listed(session)).entries
    return tuple(upstream_tool(config, entry, relay) for entry in entries)


async def _listed(session: Client | ClientSession) -> list[dict[str, Any]]:
    from mcp import ClientSession
    from mcp_types import PaginatedRequestParams

    from goat_mcp.upstreams.listing.paging import Listed, drain

    async def page_of(params: Mapping[str, Any]) -> Mapping[str, Any]:
        cursor: str | None = params.get("cursor")
        if isinstance(session, ClientSession):
            page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        else:
            page = await session.list_tools(cursor=cursor)
        return page.model_dump(by_alias=True, exclude_none=True, mode="json")

    listed = Listed()
    await drain(page_of, "tools", listed)
    return listed.entries


@dataclass(frozen=True)
class _SessionCalls:
    """Implements `CallRelay` over one session."""

    server: str
    session: Client | ClientSession

    def admit(self, spec: UpstreamSpec) -> None:
        """Whoever opened the session has chosen its server."""

    async def call(self, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED

        from goat_mcp.upstreams.calls.calls import relayed_result

        async def report(progress: float, total: float | None, message: str | None) -> None:
            await ctx.progress(progress, total, message)

        heard = report if ctx.wants_progress else None
        try:
            answer = await self.session.call_tool(spec.native_name, dict(arguments), progress_callback=heard)
        except MCPError as refused:
            if refused.code == CONNECTION_CLOSED and refused.message == "Connection closed":
                raise self._gone() from None
            raise UpstreamError(refused.code, refused.message, refused.data) from None
        except _GONE:
            raise self._gone() from None
        except RuntimeError as problem:  # the client is not open, or the answer breaks the tool's output schema
            if "context manager" in str(problem):
                raise self._gone() from None
            raise ToolError(ErrorCode.UPSTREAM, f"{self.server}: {problem}") from None
        return relayed_result(self.server, answer.model_dump(by_alias=True, exclude_none=True, mode="json")).result

    def _gone(self) -> ToolError:
        return ToolError(ErrorCode.UPSTREAM_DOWN, f"the session with {self.server} is closed", "Use another tool.")
