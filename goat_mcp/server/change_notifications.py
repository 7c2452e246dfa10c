"""Notifies clients that the catalog or something they can read changed, in both protocol eras, from one event.

Handshake clients get a plain notification each; 2026-07-28 clients listen on the SDK's bus. A principal hears of its
own things only.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Set
from contextlib import suppress
from typing import Any, Literal

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    SubscriptionBus,
    ToolsListChanged,
)

from goat_mcp.core.errors import ToolError
from goat_mcp.server.shared_bus import OwnResourceUpdated

DEBOUNCE_S = 0.05
LOOK_EVERY_S = 1.0
MAX_SUBSCRIPTIONS = 1000
"""Of one client."""
Context = ServerRequestContext[Any, Any]
Look = Callable[[Collection[str]], Awaitable[None]]
"""Announces what changed for these principals since the last look; the first one only remembers."""
ListKind = Literal["tools", "prompts", "resources"]
_CHANGED: Mapping[ListKind, ServerEvent] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


def _nothing() -> None:
    """Nobody has to hear that this is not watched any more."""


class ChangeHub:
    """One per server. `tools_changed()` may be called from any thread, the rest from anywhere on the event loop."""

    def __init__(
        self,
        principal: Callable[[], str] = lambda: "",
        looks: Callable[[], Mapping[str, Look]] = dict[str, Look],
        *,
        connected: Callable[[Context], Callable[[], None]] = lambda ctx: _nothing,
        replicas: SubscriptionBus | None = None,
        is_shared: Callable[[str], bool] = lambda uri: False,
    ) -> None:
        """`principal` returns whose request is being handled, `looks` what notices changes of other processes.

        `connected` is called for each handshake connection, and returns what to call when it closes. `replicas` carries
        changes to the other replicas' clients and from there: of lists, and of resources that `is_shared` knows.
        """
        self._principal = principal
        self._on_connected = connected
        self._streams: dict[str, _Streams] = {}
        self._clients: dict[int, _Client] = {}
        self._changed = anyio.Event()
        self._lists_changed: set[ListKind] = set()
        self._updated: set[tuple[str, str | None]] = set()
        self._replicas = replicas
        self._is_shared = is_shared
        self._outgoing: set[ServerEvent] = set()
        self._anyone_listed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._elsewhere = OtherProcesses(looks, self._watchers)

    def listed(self) -> None:
        """A client is about to get the tools. Before the first one nobody holds a list that could be outdated."""
        self._anyone_listed = True

    def tools_changed(self) -> None:
        """The list of tools is another now. Before `run` nobody is connected who could hold the old one."""
        if not self._anyone_listed:
            return
        if self._loop is None or threading.get_ident() == self._thread:
            self.list_changed("tools")
        else:
            with suppress(RuntimeError):  # the loop is closed: nobody is left to notify
                self._loop.call_soon_threadsafe(self.list_changed, "tools")

    def list_changed(self, kind: ListKind) -> None:
        """A list that clients hold is another now."""
        self._lists_changed.add(kind)
        if self._replicas is not None:
            self._outgoing.add(_CHANGED[kind])
        self._changed.set()

    def resource_changed(self, uri: str, principal: str | None) -> None:
        """What is under `uri` changed for this principal, or for all."""
        if self._replicas is not None and self._is_shared(uri):
            self._outgoing.add(OwnResourceUpdated(uri, principal))
            self._changed.set()
        self._resource_changed(uri, principal)

    def _resource_changed(self, uri: str, principal: str | None) -> None:
        if self.is_watched(uri, principal):
            self._updated.add((uri, principal))
            self._changed.set()

    def _changed_elsewhere(self, event: ServerEvent) -> None:
        if isinstance(event, ResourceUpdated):
            self._resource_changed(event.uri, event.principal if isinstance(event, OwnResourceUpdated) else None)
        elif self._anyone_listed:
            self._lists_changed |= {kind for kind, changed in _CHANGED.items() if changed == event}
            self._changed.set()

    def is_watched(self, uri: str, principal: str | None) -> bool:
        return any(
            uri in watcher.uris
            for watcher in (*self._streams.values(), *self._clients.values())
            if principal in (None, watcher.principal)
        )

    def _watchers(self, root: str) -> set[str]:
        """The principals that watch this URI or one below it."""
        return {
            watcher.principal
            for watcher in (*self._streams.values(), *self._clients.values())
            if any(uri == root or uri.startswith(f"{root}/") for uri in watcher.uris)
        }

    async def run(self) -> None:
        """Deliver changes until cancelled. Several changes in quick succession are one notice."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        if self._replicas is not None:
            self._replicas.subscribe(self._changed_elsewhere)
        async with anyio.create_task_group() as group:
            group.start_soon(self._elsewhere.run)
            while True:
                await self._changed.wait()
                await anyio.sleep(DEBOUNCE_S)
                self._changed = anyio.Event()
                lists, self._lists_changed = self._lists_changed, set()
                updated, self._updated = self._updated, set()
                for stream in list(self._streams.values()):
                    await stream.publish(lists, updated)
                for client in list(self._clients.values()):
                    client.notify(lists, updated, group)
                outgoing, self._outgoing = self._outgoing, set()
                for event in outgoing:
                    if self._replicas is not None:
                        await self._replicas.publish(event)

    def close(self) -> None:
        """End every listen stream the clean way."""
        for stream in self._streams.values():
            stream.listen.close()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one `subscriptions/listen` stream."""
        principal = self._principal()
        uris = set(params.notifications.resource_subscriptions or ())
        await self._elsewhere.before_watching(uris, principal)
        streams = self._streams.setdefault(principal, _Streams(principal))
        streams.open += 1
        streams.uris.update(uris)
        try:
            return await streams.listen(ctx, params)
        finally:
            streams.open -= 1
            streams.uris -= Counter(uris)
            if not streams.open:
                self._streams.pop(principal, None)

    def connected(self, ctx: Context) -> None:
        """Remember this handshake connection until it closes."""
        self._client(ctx)

    async def subscribe(self, ctx: Context, uri: str, release: Callable[[], None] = _nothing) -> bool:
        """Tell this handshake client of changes under `uri`. Returns False if it watches too many.

        `release` is called when it stops watching, or is gone.
        """
        await self._elsewhere.before_watching((uri,), self._principal())
        uris = self._client(ctx).uris
        if len(uris) >= MAX_SUBSCRIPTIONS and uri not in uris:
            return False
        uris.pop(uri, _nothing)()
        uris[uri] = release
        return True

    def is_subscribed(self, ctx: Context, uri: str) -> bool:
        return uri in self._client(ctx).uris

    def unsubscribe(self, ctx: Context, uri: str) -> None:
        self._client(ctx).uris.pop(uri, _nothing)()

    def _client(self, ctx: Context) -> _Client:
        # The SDK has no public way to learn that a connection closed; so this reaches in, as does `fast_path`.
        connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage]
        if (client := self._clients.get(id(connection))) is None:
            client = self._clients[id(connection)] = _Client(ctx.session, self._principal())
            connection.exit_stack.callback(self._forget, id(connection))
            connection.exit_stack.callback(self._on_connected(ctx))
        return client

    def _forget(self, connection: int) -> None:
        if (client := self._clients.pop(connection, None)) is not None:
            client.gone()


class _Streams:
    """The listen streams of one principal, on a bus of their own: the SDK's filters by URI only."""

    def __init__(self, principal: str) -> None:
        self.principal = principal
        self.open = 0
        self.uris = Counter[str]()
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)

    async def publish(self, lists: Set[ListKind], updated: Set[tuple[str, str | None]]) -> None:
        for kind in lists:
            await self._bus.publish(_CHANGED[kind])
        for uri, principal in updated:
            if principal in (None, self.principal):
                await self._bus.publish(ResourceUpdated(uri))


class _Client:
    """A handshake connection: what it watches, and which notices are not sent yet."""

    def __init__(self, session: ServerSession, principal: str) -> None:
        self.principal = principal
        self.uris: dict[str, Callable[[], None]] = {}
        """Each with what to call when it is not watched any more."""
        self._session = session
        self._pending: set[ServerEvent] = set()
        self._sending: anyio.CancelScope | None = None

    def notify(self, lists: Set[ListKind], updated: Set[tuple[str, str | None]], group: TaskGroup) -> None:
        self._pending |= {_CHANGED[kind] for kind in lists}
        for uri, principal in updated:
            if uri in self.uris and principal in (None, self.principal):
                self._pending.add(ResourceUpdated(uri))
        if self._pending and self._sending is None:
            self._sending = anyio.CancelScope()
            group.start_soon(self._send, self._sending)

    def gone(self) -> None:
        """Its connection has closed."""
        self._pending.clear()
        while self.uris:
            self.uris.popitem()[1]()
        if self._sending is not None:
            self._sending.cancel()

    async def _send(self, sending: anyio.CancelScope) -> None:
        # A client that stopped reading holds up nobody else; until it reads again or is gone, its news are kept as a
        # set: sent once, however often they came.
        with sending:
            while self._pending:
                event = self._pending.pop()
                if isinstance(event, ToolsListChanged):
                    await self._session.send_tool_list_changed()
                elif isinstance(event, PromptsListChanged):
                    await self._session.send_prompt_list_changed()
                elif isinstance(event, ResourcesListChanged):
                    await self._session.send_resource_list_changed()
                elif event.uri in self.uris:
                    await self._session.send_resource_updated(event.uri)
        self._sending = None


class OtherProcesses:
    """Notices what other processes change in shared state while somebody watches it here; otherwise nothing runs.

    One per server. `looks` by the URI they are about; they look after what is below it, too.
    Each compares what is there with what it saw before.
    """

    def __init__(self, looks: Callable[[], Mapping[str, Look]], watchers: Callable[[str], Collection[str]]) -> None:
        """`watchers` returns which principals watch a URI, or one below it. `looks` is called when somebody does."""
        self._looks = looks
        self._watchers = watchers
        self._one_at_a_time = anyio.Lock()
        self._watched = anyio.Event()

    async def before_watching(self, uris: Collection[str], principal: str) -> None:
        """From now on no change of these goes unnoticed, for this principal."""
        for root, look in self._looks().items():
            if any(uri == root or uri.startswith(f"{root}/") for uri in uris):
                await self._run(look, (principal,))
                self._watched.set()

    async def run(self) -> None:
        """Look again and again, as long as it is for somebody, until cancelled."""
        while True:
            await self._watched.wait()
            self._watched = anyio.Event()
            while looks := [(look, who) for root, look in self._looks().items() if (who := self._watchers(root))]:
                for look, principals in looks:
                    await self._run(look, principals)
                await anyio.sleep(LOOK_EVERY_S)

    async def _run(self, look: Look, principals: Collection[str]) -> None:
        # What cannot be looked at now is looked at next time; whoever reads it gets the error.
        async with self._one_at_a_time:
            with suppress(ToolError, OSError):
                await look(principals)
