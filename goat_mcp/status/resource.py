"""`goat://status`: what `goat-mcp status` shows, for clients."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import Entry, Reading, json_entry, json_reading
from goat_mcp.status.gateway_status import STATUS_URI, GatewayStatus


class StatusResource:
    """Over stdio the client is the operator's own program; over HTTP it may be anybody who has a token."""

    templates: Sequence[Entry] = ()
    entries = (
        json_entry(STATUS_URI, "status", "This server and each MCP server behind it: state, reason, what is withheld"),
    )

    def __init__(self, status: GatewayStatus) -> None:
        self._status = status

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        if uri != STATUS_URI:
            return None
        return json_reading(self._status.document(for_operator=self._status.transport == "stdio"))
