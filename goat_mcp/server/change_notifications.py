"""Notifies clients that the catalog or something they can read changed, in both protocol eras, from one event.

Handshake clients get a plain notification each; 2026-07-28 clients listen on the SDK's bus. A principal hears of its
own things only, and a session that has a process of an upstream to itself of what that one says.
"""

from __future__ import annotations

import asyncio
import copy
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

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
from goat_mcp.core.resources import UpstreamUpdate
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


def _no_session(ctx: Context) -> str:
    """Sessions are not told apart."""
    return ""


class Audience(NamedTuple):
    """Who hears of a change: this principal, and only these sessions of it; None means all."""

    principal: str | None = None
    sessions: frozenset[str] | None = None

    def includes(self, principal: str, session_key: str) -> bool:
        return self.principal in (None, principal) and (self.sessions is None or session_key in self.sessions)


EVERYBODY = Audience()
Updates = Mapping[tuple[str, Audience], Mapping[str, Any]]
"""By URI and audience the `_meta` of the last notice."""
ChangedLists = Mapping[ListKind, Audience]
_NO_META: Mapping[str, Any] = MappingProxyType({})


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
        session_of: Callable[[Context], str] = _no_session,
    ) -> None:
        """`principal` returns whose request is being handled, `session_of` the key of its session, `looks` what notices
        changes of other processes.

        `connected` is called for each handshake connection, and returns what to call when it closes. `replicas` carries
        changes to the other replicas' clients and from there: of lists, and of resources that `is_shared` knows.
        """
        self._principal = principal
        self._session_of = session_of
        self._on_connected = connected
        self._streams: dict[tuple[str, str], _Streams] = {}
        self._clients: dict[int, _Client] = {}
        self._changed = anyio.Event()
        self._lists_changed: dict[ListKind, Audience] = {}
        self._updated: dict[tuple[str, Audience], Mapping[str, Any]] = {}
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

    def own_list_changed(self, kind: ListKind, sessions: Collection[str]) -> None:
        """A list that only these sessions see is another now."""
        before = self._lists_changed.get(kind, Audience(sessions=frozenset()))
        if before.sessions is not None:
            self._lists_changed[kind] = Audience(sessions=before.sessions | frozenset(sessions))
        self._changed.set()

    def list_changed(self, kind: ListKind) -> None:
        """A list that clients hold is another now."""
        self._lists_changed[kind] = EVERYBODY
        if self._replicas is not None:
            self._outgoing.add(_CHANGED[kind])
        self._changed.set()

    def resource_changed(self, uri: str, principal: str | None) -> None:
        """What is under `uri` changed for this principal, or for all."""
        if self._replicas is not None and self._is_shared(uri):
            self._outgoing.add(OwnResourceUpdated(uri, principal))
            self._changed.set()
        self._resource_changed(uri, Audience(principal))

    def upstream_updated(self, update: UpstreamUpdate) -> None:
        """An upstream says that what is under a URI of its own changed."""
        self._resource_changed(update.uri, Audience(sessions=update.sessions), update.meta)

    def _resource_changed(self, uri: str, audience: Audience, meta: Mapping[str, Any] = _NO_META) -> None:
        if self.is_watched(uri, audience.principal):
            self._updated[uri, audience] = meta
            self._changed.set()

    def _changed_elsewhere(self, event: ServerEvent) -> None:
        if isinstance(event, ResourceUpdated):
            principal = event.principal if isinstance(event, OwnResourceUpdated) else None
            self._resource_changed(event.uri, Audience(principal))
        elif self._anyone_listed:
            self._lists_changed |= {kind: EVERYBODY for kind, changed in _CHANGED.items() if changed == event}
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
                lists, self._lists_changed = self._lists_changed, {}
                updated, self._updated = self._updated, {}
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
        key = (principal, self._session_of(ctx))
        streams = self._streams.setdefault(key, _Streams(*key))
        streams.open += 1
        streams.uris.update(uris)
        try:
            return await streams.serve(ctx, params)
        finally:
            streams.open -= 1
            streams.uris -= Counter(uris)
            if not streams.open:
                self._streams.pop(key, None)

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
            client = self._clients[id(connection)] = _Client(ctx.session, self._principal(), self._session_of(ctx))
            connection.exit_stack.callback(self._forget, id(connection))
            connection.exit_stack.callback(self._on_connected(ctx))
        return client

    def _forget(self, connection: int) -> None:
        if (client := self._clients.pop(connection, None)) is not None:
            client.gone()


class _Streams:
    """The listen streams of one principal's session, on a bus of their own: the SDK's filters by URI only."""

    def __init__(self, principal: str, session_key: str = "") -> None:
        self.principal = principal
        self.session_key = session_key
        self.open = 0
        self.uris = Counter[str]()
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._metas: dict[str, Mapping[str, Any]] = {}
        """Of the last notice of each watched URI, if that had any: the SDK's events have no room for it."""

    async def serve(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """One stream, until it ends."""
        stamped = copy.copy(ctx)
        stamped.session = _WithMeta(ctx.session, self._metas)  # type: ignore[assignment]  # all that the handler uses
        return await self.listen(stamped, params)

    async def publish(self, lists: ChangedLists, updated: Updates) -> None:
        for kind, audience in lists.items():
            if audience.includes(self.principal, self.session_key):
                await self._bus.publish(_CHANGED[kind])
        for (uri, audience), meta in updated.items():
            if uri in self.uris and audience.includes(self.principal, self.session_key):
                self._metas.pop(uri, None)
                if meta:
                    self._metas[uri] = meta
                await self._bus.publish(ResourceUpdated(uri))


class _WithMeta:
    """A session for one listen stream: its notices of updates carry the upstream's `_meta`, too (REL-5)."""

    def __init__(self, session: ServerSession, metas: Mapping[str, Mapping[str, Any]]) -> None:
        self._session = session
        self._metas = metas

    async def send_notification(self, notification: Any, related_request_id: types.RequestId | None = None) -> None:
        if isinstance(notification, types.ResourceUpdatedNotification):
            params = notification.params
            if meta := self._metas.get(str(params.uri)):
                params.meta = {**meta, **(params.meta or {})}
        await self._session.send_notification(notification, related_request_id)


class _Client:
    """A handshake connection: what it watches, and which notices are not sent yet."""

    def __init__(self, session: ServerSession, principal: str, session_key: str = "") -> None:
        self.principal = principal
        self.session_key = session_key
        self.uris: dict[str, Callable[[], None]] = {}
        """Each with what to call when it is not watched any more."""
        self._session = session
        self._pending: dict[ServerEvent, Mapping[str, Any]] = {}
        """Each with the `_meta` of the notice."""
        self._sending: anyio.CancelScope | None = None

    def notify(self, lists: ChangedLists, updated: Updates, group: TaskGroup) -> None:
        for kind, audience in lists.items():
            if audience.includes(self.principal, self.session_key):
                self._pending[_CHANGED[kind]] = _NO_META
        for (uri, audience), meta in updated.items():
            if uri in self.uris and audience.includes(self.principal, self.session_key):
                self._pending[ResourceUpdated(uri)] = meta
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
                event = next(iter(self._pending))
                meta = self._pending.pop(event)
                if isinstance(event, ToolsListChanged):
                    await self._session.send_tool_list_changed()
                elif isinstance(event, PromptsListChanged):
                    await self._session.send_prompt_list_changed()
                elif isinstance(event, ResourcesListChanged):
                    await self._session.send_resource_list_changed()
                elif event.uri in self.uris:
                    await self._send_updated(event.uri, meta)
        self._sending = None

    async def _send_updated(self, uri: str, meta: Mapping[str, Any]) -> None:
        if not meta:
            await self._session.send_resource_updated(uri)
            return
        params = types.ResourceUpdatedNotificationParams(uri=uri, _meta=dict(meta))
        await self._session.send_notification(types.ResourceUpdatedNotification(params=params))


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
