"""Watching resources: one by one in the handshake era, in change streams in 2026-07-28 (CHG-3, CHG-4).

Whoever watches one of an upstream's has that upstream watched for as long.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from goat_mcp.core.errors import ToolError, UpstreamError
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.changes import MAX_SUBSCRIPTIONS, ChangeHub
from goat_mcp.server.client_channel import Context
from goat_mcp.server.error_responses import no_such_resource, refusal
from goat_mcp.server.handlers.resources import OWN, Resources
from goat_mcp.server.requests import Requests

LISTEN_WAIT_S = 10.0
"""How long a change stream waits for upstreams before it says what it tells of."""


class Subscriptions:
    """Handlers of `resources/subscribe`, `resources/unsubscribe` and `subscriptions/listen`."""

    def __init__(self, gateway: Gateway, changes: ChangeHub, resources: Resources, requests: Requests) -> None:
        self._gateway = gateway
        self._changes = changes
        self._resources = resources
        self._requests = requests

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        uri = str(params.uri)
        if self._changes.is_subscribed(ctx, uri):
            return types.EmptyResult()
        try:
            release = await self._watch(ctx, uri)
        except ToolError as refused:
            raise refusal(refused) from None
        except UpstreamError as refused:
            raise MCPError(code=refused.code, message=refused.message, data=refused.data) from None
        if not await self._changes.subscribe(ctx, uri, release):
            release()
            raise MCPError(code=types.INVALID_PARAMS, message=f"a client may watch {MAX_SUBSCRIPTIONS} resources")
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._changes.unsubscribe(ctx, str(params.uri))
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """One change stream. It is acknowledged with what is really told of, and nothing else."""
        asked = list(dict.fromkeys(map(str, params.notifications.resource_subscriptions or ())))[:MAX_SUBSCRIPTIONS]
        with ExitStack() as watched:
            honoured = await self._honoured(ctx, asked, watched)
            filter = params.notifications.model_copy(update={"resource_subscriptions": honoured or None})
            return await self._changes.listen(ctx, params.model_copy(update={"notifications": filter}))

    async def _honoured(self, ctx: Context, asked: list[str], watched: ExitStack) -> list[str]:
        agreed: set[str] = set()

        async def watch(uri: str) -> None:
            with suppress(ToolError, UpstreamError, MCPError):
                release = await self._watch(ctx, uri)
                watched.callback(release)
                agreed.add(uri)

        async with anyio.create_task_group() as group:
            for uri in asked:
                group.start_soon(watch, uri)
        return [uri for uri in asked if uri in agreed]

    async def _watch(self, ctx: Context, uri: str) -> Callable[[], None]:
        """Have whoever has it tell of this one, until what is returned is called.

        Raises `MCPError` where nobody has it, `ToolError` and `UpstreamError` where its upstream does not agree.
        """
        if uri.startswith(OWN):
            # What cannot be read cannot be watched.
            if await self._resources.own_reading(uri, self._requests.reader(ctx)) is None:
                raise no_such_resource(uri, ctx.protocol_version)
            return _nothing
        source = await self._gateway.items.find_owner(uri, self._requests.reader(ctx))
        if source is None:
            raise no_such_resource(uri, ctx.protocol_version)
        subscriptions = self._gateway.upstreams.upstream(source).subscriptions
        await subscriptions.add(uri, LISTEN_WAIT_S)
        return partial(subscriptions.remove, uri)


def _nothing() -> None:
    """Nobody else watches our own."""
