"""`notifications/tasks` on a change stream (`subscriptions/listen` with `taskIds`), which the SDK's streams lack.

A notice holds what `tasks/get` would return. The first comes at once, so that nothing between is missed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from goat_mcp.server.caller_identity import Caller
from goat_mcp.server.client_channel import Context
from goat_mcp.server.tasks.client_tasks import ClientTasks
from goat_mcp.server.tasks.task_state import TERMINAL

MAX_WATCHED = 100
"""Tasks of one stream; of more, the first ones are watched, which the acknowledgement says."""
Listen = Callable[[Context, types.SubscriptionsListenRequestParams], Awaitable[types.SubscriptionsListenResult]]


class _TaskNotice(BaseModel):
    method: Literal["notifications/tasks"] = "notifications/tasks"
    params: dict[str, Any]


class _NamingTasks:
    """The session of a change stream whose acknowledgement names the tasks, too."""

    def __init__(self, session: Any, task_ids: Sequence[str]) -> None:
        self.acknowledged = anyio.Event()
        self._session = session
        self._task_ids = list(task_ids)

    async def send_notification(self, notification: Any, related_request_id: types.RequestId | None = None) -> None:
        if isinstance(notification, types.SubscriptionsAcknowledgedNotification) and self._task_ids:
            agreed = notification.params.notifications.model_copy(update={"taskIds": self._task_ids})
            params = notification.params.model_copy(update={"notifications": agreed})
            notification = notification.model_copy(update={"params": params})
        await self._session.send_notification(notification, related_request_id=related_request_id)
        self.acknowledged.set()


async def listen_to_tasks(
    tasks: ClientTasks,
    task_ids: Sequence[str],
    ctx: Context,
    caller: Caller,
    params: types.SubscriptionsListenRequestParams,
    listen: Listen,
) -> types.SubscriptionsListenResult:
    """Serve a change stream that reports on these tasks beside what `listen` serves. Those of others are left out."""
    known: list[str] = []
    for task_id in dict.fromkeys(task_ids):
        if len(known) < MAX_WATCHED and await _state(tasks, task_id, ctx, caller) is not None:
            known.append(task_id)
    session = _NamingTasks(ctx.session, known)
    result: types.SubscriptionsListenResult | MCPError = types.SubscriptionsListenResult()
    async with anyio.create_task_group() as group:
        for task_id in known:
            group.start_soon(_report, tasks, task_id, ctx, caller, session.acknowledged)
        try:
            result = await listen(replace(ctx, session=session), params)  # pyright: ignore[reportArgumentType]  # all of it that a stream uses
        except MCPError as refused:  # a group would wrap it
            result = refused
        group.cancel_scope.cancel()
    if isinstance(result, MCPError):
        raise result
    return result


async def _report(tasks: ClientTasks, task_id: str, ctx: Context, caller: Caller, acknowledged: anyio.Event) -> None:
    """Send each new state until the last one, or until the task is no more."""
    await acknowledged.wait()
    sent: Any = None
    while (state := await _state(tasks, task_id, ctx, caller)) is not None:
        asked: dict[str, Any] = state.get("inputRequests", {})
        seen = (state["status"], sorted(asked), state.get("statusMessage"))
        if seen != sent:
            sent = seen
            notice = _TaskNotice(params={**state, "_meta": {SUBSCRIPTION_ID_META_KEY: ctx.request_id}})
            await ctx.session.send_notification(notice, related_request_id=ctx.request_id)  # pyright: ignore[reportArgumentType]  # of an extension
        if state["status"] in TERMINAL:
            return
        await anyio.sleep(tasks.look_every_s(task_id, state))


async def _state(tasks: ClientTasks, task_id: str, ctx: Context, caller: Caller) -> dict[str, Any] | None:
    try:
        return await tasks.state(task_id, ctx, caller)
    except MCPError:
        return None
