"""Which resources of one upstream somebody watches, and its side of it: subscribed one by one in the handshake era, in
one change stream in 2026-07-28 (CHG-2, CHG-4). A new connection gets all of them again (LIF-5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

import anyio
import anyio.abc

from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.calls.attempts import ConnectionProvider
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.faults import TransportFault

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.transports.connection import Connection


ANSWER_S = 10.0
"""How long an upstream may take to say yes."""
_OVERLAP_S = 5.0
"""How long a change stream that has to be replaced lives on while the new one is not acknowledged."""
_REOPEN_S = 1.0
_NO_META: Mapping[str, Any] = MappingProxyType({})
OnUpdated = Callable[[str, Mapping[str, Any]], None]
"""Gets the URI that was updated, and the `_meta` of the notice."""


class Subscriptions:
    """Counted per URI: the upstream hears of the first and of the last. `keep` runs beside each connection."""

    def __init__(
        self,
        config: UpstreamConfig,
        provider: ConnectionProvider,
        telemetry: Telemetry,
        on_updated: OnUpdated,
        *,
        reopen_s: float = _REOPEN_S,
    ) -> None:
        """`on_updated` hears the watched URIs that changed, and must not block. `provider` is of one connection."""
        self._config = config
        self._provider = provider
        self._telemetry = telemetry
        self._on_updated = on_updated
        self._reopen_s = reopen_s
        self._counts = Counter[str]()
        self._changed = anyio.Event()
        self._settled = anyio.Event()
        self._live: frozenset[str] = frozenset()
        """What the connection tells of."""
        self._turns = WeakValueDictionary[str, anyio.Lock]()
        self._refused: dict[str, Exception] = {}
        self._was_connected = False

    async def add(self, uri: str, max_wait_s: float) -> None:
        """One more watches this URI. Raises `ToolError` or `UpstreamError` where the upstream does not agree."""
        if not self._counts:
            # Who is watched is not idle (LIF-7).
            self._provider.begin_use()
        self._counts[uri] += 1
        try:
            connection = await self._provider.ready(max_wait_s)
            if not connection.subscribes:
                raise self._tells_nothing(uri)
            if connection.stateless:
                await self._listened(uri)
            else:
                await self._subscribe(connection, uri)
        except BaseException:
            self.remove(uri)
            raise

    def remove(self, uri: str) -> None:
        """One less watches it."""
        if uri not in self._counts:
            return
        self._counts[uri] -= 1
        if self._counts[uri] <= 0:
            del self._counts[uri]
            self._refused.pop(uri, None)
            self._changed.set()
        if not self._counts:
            self._provider.end_use()

    def updated(self, uri: str, meta: Mapping[str, Any] = _NO_META) -> None:
        """The upstream says that this, or something below it, has changed. What nobody watches is nobody's business."""
        if uri in self._counts:
            self._on_updated(uri, meta)
            return
        for watched in self._counts:
            if uri.startswith(f"{watched.rstrip('/')}/"):
                self._on_updated(watched, meta)

    @property
    def is_any(self) -> bool:
        """Whether anything is watched."""
        return bool(self._counts)

    def end(self) -> None:
        """The upstream is given up; whoever watches something of it should look."""
        for uri in list(self._counts):
            self._on_updated(uri, _NO_META)

    async def keep(self, connection: Connection, hears: anyio.Event) -> None:
        """Until cancelled: have this connection tell of all that is watched.

        Sets `hears` once changes of its lists are told, or are known not to be. If somebody else has set it by then,
        they have listed without: what was listed is marked as changed.
        """
        connection.notices.on_updated = self.updated
        self._live = frozenset()
        for uri in list(self._counts) if self._was_connected else ():
            # Whether it changed meanwhile nobody can say: whoever watches should look.
            self._on_updated(uri, _NO_META)
        self._was_connected = True
        if connection.stateless:
            await self._keep_listening(connection, hears)
        else:
            hears.set()
            await self._keep_subscribed(connection)

    async def _keep_subscribed(self, connection: Connection) -> None:
        for uri in list(self._counts):
            await self._quietly(self._subscribe(connection, uri))
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            for uri in self._live - set(self._counts):
                await self._quietly(self._unsubscribe(connection, uri))

    async def _subscribe(self, connection: Connection, uri: str) -> None:
        async with self._turn(uri):
            if uri in self._counts and uri not in self._live:
                await self._request(connection, "resources/subscribe", uri)
                self._live |= {uri}

    async def _unsubscribe(self, connection: Connection, uri: str) -> None:
        async with self._turn(uri):
            if uri not in self._counts:
                self._live -= {uri}
                await self._request(connection, "resources/unsubscribe", uri)

    async def _quietly(self, asked: Awaitable[None]) -> None:
        try:
            await asked
        except (ToolError, UpstreamError) as failure:
            self._telemetry.debug("not subscribed", upstream=self._config.name, problem=str(failure))

    def _turn(self, uri: str) -> anyio.Lock:
        """Over HTTP a yes and a no on their way at once could overtake each other."""
        if (turn := self._turns.get(uri)) is None:
            turn = self._turns[uri] = anyio.Lock()
        return turn

    async def _request(self, connection: Connection, method: str, uri: str) -> None:
        try:
            with anyio.fail_after(ANSWER_S):
                await connection.ask(method, {"uri": uri}, name=uri)
        except TimeoutError:
            raise self._no_answer(uri) from None
        except TransportFault as failure:
            raise ToolError(
                ErrorCode.UPSTREAM,
                f"upstream {self._config.name} cannot be reached: {failure.fault.detail}",
                "Try again later.",
                facts={"upstream": self._config.name},
            ) from None

    async def _listened(self, uri: str) -> None:
        """Wait until the upstream's change stream tells of this URI."""
        if uri in self._live:
            return
        self._changed.set()
        with anyio.move_on_after(ANSWER_S):
            while uri not in self._live:
                if (refusal := self._refused.get(uri)) is not None:
                    raise refusal
                await self._settled.wait()
            return
        raise self._no_answer(uri)

    def _no_answer(self, uri: str) -> ToolError:
        return ToolError(
            ErrorCode.TIMEOUT,
            f"upstream {self._config.name} did not say within {ANSWER_S:g} s that it tells of {uri[:200]}",
            "Try again later.",
            facts={"upstream": self._config.name},
        )

    def _tells_nothing(self, uri: str) -> ToolError:
        return ToolError(
            ErrorCode.UPSTREAM,
            f"upstream {self._config.name} does not tell of changes of {uri[:200]}",
            "Read it again when you need it.",
            facts={"upstream": self._config.name},
        )

    async def _keep_listening(self, connection: Connection, hears: anyio.Event) -> None:
        """Hold the change stream; when it was lost, list again once it stands, for changes were missed."""
        if not connection.listened_lists:
            hears.set()
        missed: frozenset[str] = frozenset()
        while True:
            watched = frozenset(self._counts)
            self._changed = anyio.Event()
            if connection.listened_lists or watched:
                refusal = None
                async with anyio.create_task_group() as streams:
                    refusal = await self._streams(connection, watched, streams, hears, missed)
                if refusal is not None:
                    # To be refused again is no news, until something else is to be asked for.
                    await self._changed.wait()
                    continue
                await anyio.sleep(self._reopen_s)
                missed = watched
            else:
                await self._changed.wait()

    async def _streams(
        self,
        connection: Connection,
        watched: frozenset[str],
        streams: anyio.abc.TaskGroup,
        hears: anyio.Event,
        missed: frozenset[str],
    ) -> UpstreamError | None:
        """Open a stream, and another whenever something else is watched; the old one ends once that stands.

        Of `missed` nobody was told for a while. Returns when the last one has ended: with the upstream's refusal, if
        that is why.
        """
        current = await self._open(connection, watched, streams)
        # Only now: what changed between such a look and the stream's beginning would be told to nobody.
        if hears.is_set() and connection.listened_lists:
            connection.tools_changed.set()
            connection.notices.mark("resources", "prompts")
        for uri in missed & set(self._counts):
            self._on_updated(uri, _NO_META)
        hears.set()
        while True:
            ended = await _first(current.ended, self._changed)
            if ended is current.ended:
                streams.cancel_scope.cancel()
                self._live = frozenset()
                return current.refusal
            self._changed = anyio.Event()
            wanted = frozenset(self._counts)
            if wanted == current.watched:
                continue
            # Who asks meanwhile for what the next stream leaves out has to wait for the one after it.
            self._live &= wanted
            replacement = await self._open(connection, wanted, streams)
            current.scope.cancel()
            current = replacement

    async def _open(self, connection: Connection, watched: frozenset[str], streams: anyio.abc.TaskGroup) -> _Stream:
        connection.notices.acknowledgement = anyio.Event()
        stream = _Stream(watched)
        filter: dict[str, Any] = dict(connection.listened_lists)
        if watched:
            filter["resourceSubscriptions"] = sorted(watched)
        streams.start_soon(self._hold, connection, filter, stream)
        with anyio.move_on_after(_OVERLAP_S):
            await _first(connection.notices.acknowledgement, stream.ended)
        honoured = _honoured(connection.notices.acknowledged) if connection.notices.acknowledgement.is_set() else ()
        self._live = watched & frozenset(honoured)
        for uri in watched - self._live:
            self._refused[uri] = stream.refusal or self._tells_nothing(uri)
        settled, self._settled = self._settled, anyio.Event()
        settled.set()
        return stream

    async def _hold(self, connection: Connection, filter: Mapping[str, Any], stream: _Stream) -> None:
        with stream.scope:
            try:
                await connection.listen(filter)
            except UpstreamError as refused:
                stream.refusal = refused
                self._telemetry.debug("no change stream", upstream=self._config.name, problem=str(refused))
            except TransportFault as failure:
                self._telemetry.debug("change stream lost", upstream=self._config.name, problem=str(failure))
        stream.ended.set()


class _Stream:
    """One `subscriptions/listen` request."""

    def __init__(self, watched: frozenset[str]) -> None:
        self.watched = watched
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()
        self.refusal: UpstreamError | None = None


def _honoured(acknowledged: Mapping[str, Any] | None) -> tuple[str, ...]:
    uris = (acknowledged or {}).get("resourceSubscriptions")
    return tuple(uri for uri in cast("list[Any]", uris) if isinstance(uri, str)) if isinstance(uris, list) else ()


async def _first(*events: anyio.Event) -> anyio.Event:
    """The first of the events that is set."""
    async with anyio.create_task_group() as group:

        async def wait(event: anyio.Event) -> None:
            await event.wait()
            group.cancel_scope.cancel()

        for event in events:
            group.start_soon(wait, event)
    return next(event for event in events if event.is_set())
