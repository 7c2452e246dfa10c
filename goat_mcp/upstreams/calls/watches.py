"""Who watches which resource of one upstream, and on which of its connections (CHG-4).

A session that has a process to itself hears from that one, and nobody else does. Who has none yet hears from the first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError, UpstreamError
from goat_mcp.core.resources import UpstreamUpdate
from goat_mcp.upstreams.calls.attempts import ConnectionProvider
from goat_mcp.upstreams.calls.subscriptions import ANSWER_S, OnUpdated, Subscriptions

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.transports.connection import Connection

Watch = tuple[str, str]
"""A session and a URI."""


class Places(Protocol):
    """Which connection serves a session."""

    def provider_of(self, session_key: str) -> ConnectionProvider | None:
        """The one that its calls take; None if it has made none."""
        ...

    @property
    def first(self) -> ConnectionProvider:
        """The one that all take that have none."""
        ...

    async def claim(self, ctx: ToolContext) -> ConnectionProvider:
        """The one that its next call would take, from now on its own. Raises `ToolError`."""
        ...


class Watches:
    """Of one upstream. `keep_placed` is its task; `subscriptions_of` each connection are kept beside that one."""

    def __init__(
        self,
        places: Places,
        make: Callable[[ConnectionProvider, OnUpdated], Subscriptions],
        tell: Callable[[UpstreamUpdate], None],
    ) -> None:
        """`tell` hears what was updated, for whom, and must not block."""
        self._places = places
        self._make = make
        self._tell = tell
        self._subscriptions: dict[ConnectionProvider, Subscriptions] = {}
        self._at: dict[Watch, list[ConnectionProvider]] = {}
        """Where each is watched: once for each time that the session has asked."""
        self._moved = anyio.Event()

    def subscriptions_of(self, provider: ConnectionProvider) -> Subscriptions:
        """What is watched over one connection."""
        if (known := self._subscriptions.get(provider)) is None:
            known = self._subscriptions[provider] = self._make(provider, partial(self._updated, provider))
        return known

    async def add(self, ctx: ToolContext, uri: str, max_wait_s: float) -> Callable[[], None]:
        """Watch a URI for this session until what is returned is called. Raises as `Subscriptions.add`."""
        key = ctx.session_key
        provider = self._places.provider_of(key) or await self._places.claim(ctx)
        await self.subscriptions_of(provider).add(uri, max_wait_s)
        self._at.setdefault((key, uri), []).append(provider)
        return partial(self._remove, (key, uri))

    def _remove(self, watch: Watch) -> None:
        providers = self._at.get(watch)
        if not providers:
            return
        provider = providers.pop()
        if not providers:
            del self._at[watch]
        self.subscriptions_of(provider).remove(watch[1])

    def moved(self) -> None:
        """Some session may have another connection now."""
        if self._at:
            self._moved.set()

    def end(self) -> None:
        """The upstream is given up; whoever watches something of it should look."""
        for subscriptions in self._subscriptions.values():
            subscriptions.end()

    async def keep(self, provider: ConnectionProvider, connection: Connection, hears: anyio.Event) -> None:
        """See `Subscriptions.keep`."""
        subscriptions = self.subscriptions_of(provider)
        try:
            await subscriptions.keep(connection, hears)
        finally:
            if not subscriptions.is_any and self._subscriptions.get(provider) is subscriptions:
                del self._subscriptions[provider]

    async def keep_placed(self) -> None:
        """Until cancelled: what a session watches is watched over the connection that serves it."""
        while True:
            await self._moved.wait()
            self._moved = anyio.Event()
            for watch in list(self._at):
                await self._place(watch, self._places.provider_of(watch[0]) or self._places.first)

    async def _place(self, watch: Watch, provider: ConnectionProvider) -> None:
        for before in [one for one in self._at.get(watch, ()) if one is not provider]:
            if not await _agrees(self.subscriptions_of(provider).add(watch[1], ANSWER_S)):
                return  # the process that was asked first still tells
            now = self._at.get(watch, [])
            if before not in now:
                self.subscriptions_of(provider).remove(watch[1])
                return
            now[now.index(before)] = provider
            self.subscriptions_of(before).remove(watch[1])
            # What it holds there is another matter than what the client knows of.
            self._tell(UpstreamUpdate(watch[1], sessions=frozenset({watch[0]})))

    def _updated(self, provider: ConnectionProvider, uri: str, meta: Mapping[str, Any]) -> None:
        sessions = frozenset(key for (key, watched), at in self._at.items() if watched == uri and provider in at)
        if sessions:
            self._tell(UpstreamUpdate(uri, meta, sessions))


async def _agrees(asked: Awaitable[None]) -> bool:
    try:
        await asked
    except (ToolError, UpstreamError):
        return False
    return True
