"""The SDK's dispatcher towards an upstream, whose cancellations say what the client behind the request said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from goat_mcp.core.calling_client import CallingClient
from goat_mcp.upstreams.envelope import cancelled_params


class UpstreamDispatcher(JSONRPCDispatcher[Any]):
    """`clients`: those behind the requests that wait for their answer, by request id."""

    def __init__(self, read: Any, write: Any) -> None:
        super().__init__(read, write)
        self.clients: dict[int, CallingClient] = {}

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **of_sdk: Any
    ) -> None:
        if method == "notifications/cancelled" and params and (client := self.clients.get(params["requestId"])):
            params = cancelled_params(params["requestId"], client, params["reason"])
        await super().notify(method, params, opts, **of_sdk)
