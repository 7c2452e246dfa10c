"""Prompts and completions as MCP requests. All are of upstreams; we have none of our own."""

from __future__ import annotations

from typing import Any

import mcp_types as types

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.client_channel import Context
from goat_mcp.server.downgrade_result import downgraded_completion, downgraded_messages
from goat_mcp.server.error_responses import check
from goat_mcp.server.handlers.resource_lists import ResourceLists
from goat_mcp.server.requests import Requests
from goat_mcp.server.sanitize_result import sanitized_item


class Prompts:
    """Handlers of `prompts/list`, `prompts/get` and `completion/complete`."""

    def __init__(self, gateway: Gateway, lists: ResourceLists, requests: Requests) -> None:
        self._gateway = gateway
        self._lists = lists
        self._requests = requests

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        return await self._lists.page("prompts", "prompts", (), params, self._requests.reader(ctx).rights)

    async def get(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        async def work(context: ToolContext) -> ToolResult:
            return await self._gateway.items.get_prompt(params.name, params.arguments, context)

        outcome = await self._requests.converse(ctx, params, work)
        if isinstance(outcome, types.InputRequiredResult):
            return outcome
        from goat_mcp.catalog.resource_tools import messages_of

        return downgraded_messages(sanitized_item(messages_of(check(outcome))), ctx.protocol_version)

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> Any:
        asked = params.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"meta"})
        if self._is_ours(params):
            # Known, and nothing to choose from (AGG-2).
            return downgraded_completion({}, ctx.protocol_version)
        ready = self._requests.context(ctx)
        outcome = await self._requests.relayed(self._gateway.items.complete({**asked, "_meta": ready.meta}, ready))
        from goat_mcp.catalog.resource_tools import completion_of

        return downgraded_completion(sanitized_item(completion_of(check(outcome))), ctx.protocol_version)

    def _is_ours(self, params: types.CompleteRequestParams) -> bool:
        uri = params.ref.uri if isinstance(params.ref, types.ResourceTemplateReference) else None
        providers = self._gateway.resources.providers
        return any(uri == template["uriTemplate"] for provider in providers for template in provider.templates)
