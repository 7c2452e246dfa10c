"""Our own resources as MCP requests: list, read, subscribe. What they hold, their providers know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goat_mcp.core.context import ToolContext
from goat_mcp.server.changes import MAX_SUBSCRIPTIONS, ChangeHub

if TYPE_CHECKING:  # loaded when somebody asks for one
    from goat_mcp.core.resources import Reading, ResourceProvider

RESOURCE_NOT_FOUND = -32002
"""Of the handshake era; 2026-07-28 has retired it for invalid params."""
Context = ServerRequestContext[Any, Any]


class Resources:
    """Handlers of `resources/*` over the providers, in their order."""

    def __init__(
        self,
        providers: Callable[[], Sequence[ResourceProvider]],
        changes: ChangeHub,
        reader: Callable[[Context], ToolContext],
    ) -> None:
        """`reader` tells who is asking."""
        self._providers = providers
        self._changes = changes
        self._reader = reader

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        entries = [entry for provider in self._providers() for entry in provider.entries]
        return types.ListResourcesResult(resources=[types.Resource.model_validate(entry) for entry in entries])

    async def templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        entries = [entry for provider in self._providers() for entry in provider.templates]
        return types.ListResourceTemplatesResult(
            resource_templates=[types.ResourceTemplate.model_validate(entry) for entry in entries]
        )

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        reading = await self._reading(ctx, uri)
        contents = types.TextResourceContents(uri=uri, mime_type=reading.mime_type, text=reading.text)
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        uri = str(params.uri)
        await self._reading(ctx, uri)  # what cannot be read cannot be watched
        if not await self._changes.subscribe(ctx, uri):
            raise MCPError(code=types.INVALID_PARAMS, message=f"a client may watch {MAX_SUBSCRIPTIONS} resources")
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._changes.unsubscribe(ctx, str(params.uri))
        return types.EmptyResult()

    async def _reading(self, ctx: Context, uri: str) -> Reading:
        """Raises `MCPError` where there is nothing, or nothing of this principal's."""
        reader = self._reader(ctx)
        for provider in self._providers():
            if (reading := await provider.read(uri, reader)) is not None:
                return reading
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        raise MCPError(
            code=types.INVALID_PARAMS if is_modern else RESOURCE_NOT_FOUND,
            message=f"resource not found: {uri[:200]}",
            data={"uri": uri},
        )
