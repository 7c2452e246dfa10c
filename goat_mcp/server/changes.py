"""Tells clients that the catalog changed, in both protocol eras, from one event.

Handshake clients get a plain notification each; 2026-07-28 clients listen on the SDK's bus.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

SEND_TIMEOUT_S = 5.0
DEBOUNCE_S = 0.05


class ChangeHub:
    """One per server. `tools_changed()` may be called from anywhere on the event loop, as often as one likes."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._sessions: dict[int, ServerSession] = {}
        self._changed = anyio.Event()
        self._anyone_listed = False

    def listed(self) -> None:
        """A client is about to get the list. Before the first one nobody holds a list that could be outdated."""
        self._anyone_listed = True

    def tools_changed(self) -> None:
        if self._anyone_listed:
            self._changed.set()

    async def run(self) -> None:
        """Deliver changes until cancelled. Several changes in quick succession are one notice."""
        while True:
            await self._changed.wait()
            await anyio.sleep(DEBOUNCE_S)
            self._changed = anyio.Event()
            await self._bus.publish(ToolsListChanged())
            async with anyio.create_task_group() as group:
                self._notify_sessions(group)

    def close(self) -> None:
        """End every listen stream the clean way."""
        self.listen.close()

    async def track(self, ctx: ServerRequestContext[Any, Any], call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Server middleware: remember each handshake connection until it closes."""
        answer = await call_next(ctx)
        if ctx.method == "notifications/initialized":
            # The SDK has no public way to learn that a connection closed; this is the one place that reaches in.
            connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage]
            self._sessions[id(connection)] = ctx.session
            connection.exit_stack.callback(self._sessions.pop, id(connection), None)
        return answer

    def _notify_sessions(self, group: TaskGroup) -> None:
        for session in list(self._sessions.values()):
            group.start_soon(_notify, session)


async def _notify(session: ServerSession) -> None:
    # A client that stopped reading must not hold up the others.
    with anyio.move_on_after(SEND_TIMEOUT_S):
        await session.send_tool_list_changed()
