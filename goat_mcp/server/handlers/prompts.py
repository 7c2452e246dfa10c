"""Prompts and completions as MCP requests. All are of upstreams; we have none of our own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mcp_types as types

from goat_mcp.core.errors import UpstreamError
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.client_channel import Context
from goat_mcp.server.error_responses import check, relayed_error
from goat_mcp.server.handlers.resource_lists import ResourceLists
from goat_mcp.server.requests import Requests
from goat_mcp.server.result_compatibility import downgraded_completion, downgraded_messages, sanitized_answer


@dataclass(eq=False)
class Prompts:
    """Handlers of `prompts/list`, `prompts/get` and `completion/complete`."""

    gateway: Gateway
    lists: ResourceLists
    requests: Requests

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        return await self.lists.page("prompts", "prompts", (), params, self.requests.reader(ctx).rights)

    async def get(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        calls = self.gateway.on_demand.resource_calls()
        outcome = await self.requests.converse(
            ctx, params, lambda context: calls.get_prompt(params.name, params.arguments, context)
        )
        if not isinstance(outcome, ToolResult):
            return outcome
        from goat_mcp.catalog.resource_tools import messages_of

        return downgraded_messages(sanitized_answer(messages_of(check(outcome))), ctx.protocol_version)

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> Any:
        sent = params.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"meta"})
        if self._is_ours(params):
            # Known, and nothing to choose from (AGG-2).
            return downgraded_completion({}, ctx.protocol_version)
        context = self.requests.context(ctx)
        try:
            calls = self.gateway.on_demand.resource_calls()
            outcome = await calls.complete({**sent, "_meta": context.meta}, context)
        except UpstreamError as refused:
            raise relayed_error(refused) from None
        from goat_mcp.catalog.resource_tools import completion_of

        return downgraded_completion(sanitized_answer(completion_of(check(outcome))), ctx.protocol_version)

    def _is_ours(self, params: types.CompleteRequestParams) -> bool:
        uri = params.ref.uri if isinstance(params.ref, types.ResourceTemplateReference) else None
        providers = self.gateway.resources.providers
        return any(uri == template["uriTemplate"] for provider in providers for template in provider.templates)
