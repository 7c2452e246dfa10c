"""`tools/list`: its checked wire form is made once for each generation, revision and rights."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goat_mcp.catalog.schemas.dialects import for_handshake
from goat_mcp.core.context import ToolContext
from goat_mcp.core.rights import Rights
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.caller_identity import CallerIdentity
from goat_mcp.server.change_notifications import ChangeHub
from goat_mcp.server.client_channel import Context
from goat_mcp.server.client_roots import RootsRequest
from goat_mcp.server.handlers.resource_lists import foreign_cursor
from goat_mcp.server.prepared_list import PreparedList
from goat_mcp.server.requests import Requests

LIST_TTL_MS = 60_000


@dataclass(eq=False)
class ToolList:
    """One gateway's, for all clients of one kind of transport."""

    gateway: Gateway
    changes: ChangeHub
    who: CallerIdentity
    roots: RootsRequest
    requests: Requests
    _ready: dict[tuple[int, str, Rights, int], dict[str, Any]] = field(default_factory=dict[Any, Any])

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        # Not paginated: clients list again before every call of a tool that was not on the first page.
        entries = self.gateway.catalog.of(self.who.of(ctx).rights).listing()
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            # Their clients drop the whole list for one output that is no object (SCH-3).
            entries = [for_handshake(entry) for entry in entries]
        ttl_ms = min(LIST_TTL_MS, self.gateway.upstreams.tools_ttl_ms(LIST_TTL_MS))
        return {"tools": entries, "resultType": "complete", "ttlMs": ttl_ms, "cacheScope": "private"}

    async def once(self, ctx: Context, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Answer `tools/list`: `list`, and what the SDK makes of it, only run for what is not known yet."""
        if (ctx.params or {}).get("cursor") is not None:
            # The list has one page: a cursor is of another list.
            raise foreign_cursor("tools")
        if ctx.session.client_capabilities is None or ctx.session.client_capabilities.roots is None:
            self.roots.go_without()
        gateway, context = self.gateway, self.requests.context(ctx)
        await gateway.upstreams.first_list(ctx=context, shows=gateway.visibility.shown(context.rights))
        self.changes.listed()
        gateway.first_list.set()
        ttl_ms = gateway.upstreams.tools_ttl_ms(LIST_TTL_MS)
        key = (gateway.catalog.generation, ctx.protocol_version, context.rights, ttl_ms)
        if (ready := self._ready.get(key)) is None:
            ready = await call_next(ctx)
            ready = {**ready, "tools": PreparedList(ready["tools"])}
            self._ready = {kept: answer for kept, answer in self._ready.items() if kept[0] == key[0]} | {key: ready}
        return ready if gateway.user_code.steps is None else self._step(context, ready, ctx.protocol_version)

    def _step(self, context: ToolContext, ready: dict[str, Any], version: str) -> dict[str, Any]:
        """The list as extensions leave it for this step."""
        catalog = self.gateway.catalog.of(context.rights)
        entries = {entry["name"]: entry for entry in ready["tools"]}
        specs = {tool.spec.name: tool.spec for tool in catalog.tools()}
        shown = self.gateway.on_demand.preflight().begin_step(
            context, {name: specs[name] for name in entries if name in specs}
        )
        added = {name: dict(catalog.shown()[name].entry) for name in shown if name not in entries}
        if version not in MODERN_PROTOCOL_VERSIONS:
            added = {name: for_handshake(entry) for name, entry in added.items()}
        return {**ready, "tools": [entries.get(name) or added[name] for name in shown]}

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """As it was listed: what a client mirrors in headers it took from there."""
        listed = self.gateway.catalog.listed_anywhere(name)
        return listed.entry["inputSchema"] if listed is not None else None
