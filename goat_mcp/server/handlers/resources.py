"""Resources as MCP requests: lists and reads, of our own and of upstreams. What they hold, others know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.result import ToolResult
from goat_mcp.core.surrogates import escaped_surrogates
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.client_channel import Context
from goat_mcp.server.downgrade_result import downgraded_contents
from goat_mcp.server.error_responses import check, no_such_resource
from goat_mcp.server.handlers.resource_lists import ResourceLists
from goat_mcp.server.requests import Requests
from goat_mcp.server.sanitize_result import sanitized_item

if TYPE_CHECKING:  # loaded when somebody asks for one
    from goat_mcp.core.resources import Reading

OWN = "goat://"
"""What our own URIs begin with. No upstream is asked for one."""


class Resources:
    """Handlers of `resources/list`, `resources/templates/list` and `resources/read`."""

    def __init__(self, gateway: Gateway, lists: ResourceLists, requests: Requests) -> None:
        self._gateway = gateway
        self._lists = lists
        self._requests = requests

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        return await self._lists.page(
            "resources", "resources", self._own("entries"), params, self._requests.reader(ctx).rights
        )

    async def templates(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        return await self._lists.page(
            "templates", "resourceTemplates", self._own("templates"), params, self._requests.reader(ctx).rights
        )

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        uri = str(params.uri)
        if (reading := await self.own_reading(uri, self._requests.reader(ctx))) is not None:
            text = escaped_surrogates(reading.text)
            contents = types.TextResourceContents(uri=uri, mime_type=reading.mime_type, text=text)
            return types.ReadResourceResult(contents=[contents])
        if uri.startswith(OWN):
            raise no_such_resource(uri, ctx.protocol_version)

        async def work(context: ToolContext) -> ToolResult:
            return await self._gateway.items.read(uri, context)

        outcome = await self._requests.converse(ctx, params, work)
        if isinstance(outcome, types.InputRequiredResult):
            return outcome
        if outcome.error_code == ErrorCode.TOOL_NOT_FOUND:
            raise no_such_resource(uri, ctx.protocol_version)
        from goat_mcp.catalog.resource_tools import contents_of

        return downgraded_contents(sanitized_item(contents_of(check(outcome), uri)), ctx.protocol_version, uri)

    async def own_reading(self, uri: str, reader: ToolContext) -> Reading | None:
        """What one of our own holds; None where there is nothing, or nothing of this principal's."""
        if uri.startswith(OWN):
            for provider in self._gateway.resources.providers:
                if (reading := await provider.read(uri, reader)) is not None:
                    return reading
        return None

    def _own(self, member: str) -> Sequence[Mapping[str, Any]]:
        return [entry for provider in self._gateway.resources.providers for entry in getattr(provider, member)]
