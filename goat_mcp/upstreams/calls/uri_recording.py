"""Tool calls on their way to an upstream: what their results point to may be read afterwards (NAM-6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goat_mcp.catalog.uri_ownership import UriOwnership
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.upstreams.listing.proxy_tool import CallRelay, UpstreamSpec


@dataclass(frozen=True)
class UriRecordingRelay:
    """`relay`, with the URIs in its results noted as given by `source`."""

    relay: CallRelay
    source: str
    given: UriOwnership

    def admit(self, spec: UpstreamSpec) -> None:
        self.relay.admit(spec)

    async def call(self, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        result = await self.relay.call(spec, arguments, ctx)
        self.given.note(ctx.session_key, self.source, result.content)
        return result
