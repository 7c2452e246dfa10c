"""`goat://status`: what `goat-mcp status` shows, for clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import Entry, Reading, json_entry, json_reading
from goat_mcp.core.rights import Rights
from goat_mcp.gateway.status.gateway_status import STATUS_URI, GatewayStatus


class StatusResource:
    """Over stdio the client is the operator's own program; over HTTP it may be anybody who has a token."""

    templates: Sequence[Entry] = ()
    entries = (
        json_entry(STATUS_URI, "status", "This server and each MCP server behind it: state, reason, what is withheld"),
    )

    def __init__(self, status: GatewayStatus, shows: Callable[[Rights], Callable[[str], bool]]) -> None:
        """`shows`: which servers a reader with these rights may know of."""
        self._status = status
        self._shows = shows

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        if uri != STATUS_URI:
            return None
        is_operator = self._status.transport == "stdio"
        return json_reading(self._status.document(for_operator=is_operator, shows=self._shows(ctx.rights)))
