"""An upstream whose notices carry a `_meta` of its own, in the way of one protocol era, and that keeps why it was
cancelled.

Usage: notices.py ERA [--http]. ERA is legacy or 2026-07-28; with --http it listens on a free port and prints its URL.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    # Importing the SDK takes a tenth longer with it, and tests start this hundreds of times.
    gc.disable()

import copy
import json
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from tests.e2e.servers.serving import serve

ERA = sys.argv[1]
IS_MODERN = ERA == "2026-07-28"
Context = ServerRequestContext[Any, Any]
URI = f"note://{'new' if IS_MODERN else 'old'}_{'http' if '--http' in sys.argv else 'stdio'}"
BUS = InMemorySubscriptionBus()
LISTEN = ListenHandler(BUS)
OF_UPDATE = {"vendor/update": {"by": "somebody"}, "io.modelcontextprotocol/forged": "by the upstream"}
CANCELLED: list[dict[str, Any]] = []
HANGING: list[object] = []


def of_progress(step: int) -> dict[str, Any]:
    return {"vendor/step": step, "io.modelcontextprotocol/forged": "by the upstream"}


async def list_tools(ctx: Context, params: Any) -> types.ListToolsResult:
    names = ("work", "hang", "hanging", "cancelled", "touch")
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in names])


async def list_resources(ctx: Context, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(uri=URI, name="one")])


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = "done"
    match params.name:
        case "work":
            asked: dict[str, Any] = dict(ctx.params or {}).get("_meta") or {}
            for step in (1, 2):
                about = {
                    "progressToken": asked.get("progressToken"),
                    "progress": step,
                    "total": 2,
                    "message": f"step {step}",
                }
                report = types.ProgressNotification.model_validate(
                    {"method": "notifications/progress", "params": {**about, "_meta": of_progress(step)}}
                )
                await ctx.session.send_notification(report, ctx.request_id)
        case "hang":
            HANGING.append(ctx.request_id)
            try:
                await anyio.sleep_forever()
            finally:
                HANGING.pop()
        case "hanging":
            with anyio.fail_after(30):
                while not HANGING:  # noqa: ASYNC110  # it comes by another request
                    await anyio.sleep(0.01)
        case "cancelled":
            with anyio.fail_after(30):
                while not CANCELLED:  # noqa: ASYNC110  # it comes by another request
                    await anyio.sleep(0.01)
            text = json.dumps(CANCELLED.pop())
        case _ if IS_MODERN:
            await BUS.publish(ResourceUpdated(URI))
        case _:
            updated = types.ResourceUpdatedNotificationParams(uri=URI, _meta=OF_UPDATE)
            await ctx.session.send_notification(types.ResourceUpdatedNotification(params=updated))
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def cancelled(ctx: Context, params: types.CancelledNotificationParams) -> None:
    CANCELLED.append({"reason": params.reason, "_meta": dict(params.meta or {})})


async def agree(ctx: Context, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


class _WithMeta:
    """A session whose updates say more than the SDK's own."""

    def __init__(self, session: Any) -> None:
        self._session = session

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        if isinstance(notification, types.ResourceUpdatedNotification):
            notification.params.meta = {**OF_UPDATE, **(notification.params.meta or {})}
        await self._session.send_notification(notification, related_request_id)


async def listen(ctx: Context, params: types.SubscriptionsListenRequestParams) -> types.SubscriptionsListenResult:
    told = copy.copy(ctx)
    told.session = _WithMeta(ctx.session)  # type: ignore[assignment]  # all that the handler uses
    return await LISTEN(told, params)


class _Notices(Server[Any]):
    def get_capabilities(self, *args: Any, **options: Any) -> types.ServerCapabilities:
        return super().get_capabilities(NotificationOptions(resources_changed=True), *args[1:], **options)


def server() -> Server[Any]:
    made = _Notices(
        "notices",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_subscribe_resource=agree,
        on_unsubscribe_resource=agree,
        on_subscriptions_listen=listen,
    )
    made.add_notification_handler("notifications/cancelled", types.CancelledNotificationParams, cancelled)
    return made


if __name__ == "__main__":
    serve(server(), ERA, over_http="--http" in sys.argv)
