"""What sessions see of one upstream that have a process of it to themselves (CHG-1, CHG-4).

Most processes of an upstream list the same: then all sessions see the lists of the first. If one lists something else
(it works in another workspace, serves a client with other abilities, or offers more after a call), its sessions see
that, and nobody else does. What changes there is announced to them alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio

from goat_mcp.catalog.own_lists import OwnLists
from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import UpstreamUpdate
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.cache.offering_cache import OfferingCache
from goat_mcp.upstreams.cache.tool_cache import ToolCache
from goat_mcp.upstreams.cache.warm_catalog import StoredItems
from goat_mcp.upstreams.calls.attempts import ConnectionProvider
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.connection_pool import ConnectionPool, PooledRequest
from goat_mcp.upstreams.pinning.pins import ReceivedDefinition
from goat_mcp.upstreams.retry_policy import SupervisorLimits
from goat_mcp.upstreams.supervisor import Supervisor

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.calls.subscriptions import OnUpdated, Subscriptions
    from goat_mcp.upstreams.calls.watches import Watches
    from goat_mcp.upstreams.transports.connection import Connection


T = TypeVar("T")
_MAX_COMPARED = 256


def _definitions(seen: Sequence[ReceivedDefinition]) -> object:
    return [(one.name, one.sha256) for one in seen]


def _as_listed(items: StoredItems) -> object:
    return items


class ClientViews:
    """Of one upstream. `own_lists` is where sessions see from."""

    def __init__(
        self,
        config: UpstreamConfig,
        pool: ConnectionPool,
        tools: ToolCache,
        offerings: OfferingCache,
        *,
        own_lists: OwnLists,
        workspace_of: Callable[[ToolContext], Awaitable[Path | None]],
        limits: SupervisorLimits,
        telemetry: Telemetry,
        on_updated: Callable[[UpstreamUpdate], None],
    ) -> None:
        self._config = config
        self._pool = pool
        self._tools = tools
        self._offerings = offerings
        self._own_lists = own_lists
        self._workspace_of = workspace_of
        self._limits = limits
        self._telemetry = telemetry
        self._on_updated = on_updated
        self._seen: dict[Supervisor, Sequence[ReceivedDefinition]] = {}
        self._items: dict[Supervisor, StoredItems] = {}
        self._compared: dict[tuple[int, int], tuple[object, object, bool]] = {}
        self._is_over = False
        self._watches: Watches | None = None
        self._is_watched = anyio.Event()
        pool.on_moved = self._moved

    # Lists

    async def list_tools(self, connection: Connection) -> str:
        """List a connection that serves single clients, and show them what came. Returns what went wrong."""
        seen = await self._tools.of_client(connection, self._limits.list_timeout_s)
        if isinstance(seen, str):
            return seen
        if (supervisor := self._pool.of_connection(connection)) is not None:
            self._seen[supervisor] = seen
            self.show()
        return ""

    async def keep_offered(self, connection: Connection) -> None:
        """As `OfferingCache.keep`, for a connection that serves single clients."""
        await self._offerings.wanted()
        while True:
            connection.notices.changed()
            items = await self._offerings.of_client(connection)
            supervisor = self._pool.of_connection(connection)
            if items is not None and supervisor is not None:
                self._items[supervisor] = items
                self.show()
            await anyio.sleep(self._limits.relist_interval_s)
            await connection.notices.wait()

    def show(self) -> None:
        """What a process lists, the sessions see that it serves. Also called when all others see something else."""
        if self._is_over or (not self._seen and not self._items):
            return
        sessions, leader = self._pool.sessions(), self._pool.leader.supervisor
        for of_process in (self._seen, self._items):
            for gone in [one for one in of_process if one is leader or one not in sessions.values()]:
                del of_process[gone]
        tools = {
            supervisor: self._tools.tools_of(seen)
            for supervisor, seen in self._seen.items()
            if self._differ(seen, self._tools.seen, _definitions)
        }
        offered = {
            supervisor: self._offerings.offering_of(items)
            for supervisor, items in self._items.items()
            if self._differ(items, self._offerings.listed, _as_listed)
        }
        source = self._config.source
        self._own_lists.replace_tools(
            source, {key: tools[one] for key, one in sessions.items() if one in tools}, self._tools.shown
        )
        if self._offerings.is_known:
            self._own_lists.replace_offerings(
                source, {key: offered[one] for key, one in sessions.items() if one in offered}, self._offerings.shown
            )

    def _differ(self, own: T, for_all: T, look: Callable[[T], object]) -> bool:
        """Whether a process lists something else than the first. It is asked for each session that comes, and mostly
        about the same two lists."""
        key = (id(own), id(for_all))
        if (known := self._compared.get(key)) is None or known[0] is not own or known[1] is not for_all:
            if len(self._compared) >= _MAX_COMPARED:
                self._compared.clear()
            known = self._compared[key] = (own, for_all, look(own) != look(for_all))
        return known[2]

    # Watched resources

    async def keep_placed(self) -> None:
        """See `Watches`."""
        await self._is_watched.wait()
        await self.watches.keep_placed()

    @property
    def watches(self) -> Watches:
        if self._watches is None:
            from goat_mcp.upstreams.calls.watches import Watches

            self._watches = Watches(self, self._make_subscriptions, self._on_updated)
            self._is_watched.set()
        return self._watches

    def _make_subscriptions(self, provider: ConnectionProvider, on_updated: OnUpdated) -> Subscriptions:
        from goat_mcp.upstreams.calls.subscriptions import Subscriptions

        reopen_s = self._limits.relist_interval_s
        return Subscriptions(self._config, provider, self._telemetry, on_updated, reopen_s=reopen_s)

    def provider_of(self, session_key: str) -> Supervisor | None:
        """See `Places`."""
        return self._pool.of_session(session_key)

    @property
    def first(self) -> Supervisor:
        """See `Places`."""
        return self._pool.leader.supervisor

    async def claim(self, ctx: ToolContext) -> Supervisor:
        """See `Places`."""
        async with PooledRequest(self._pool, self._workspace_of, ctx) as supervisor:
            return supervisor

    async def keep_watched(self, connection: Connection, hears: anyio.Event) -> None:
        """See `Subscriptions.keep`."""
        if (supervisor := self._pool.of_connection(connection)) is not None:
            await self.watches.keep(supervisor, connection, hears)

    def _moved(self) -> None:
        self.show()
        if self._watches is not None:
            self._watches.moved()

    def end(self) -> None:
        """The entry has gone, or another one has its place."""
        self._is_over = True
        self._seen.clear()
        self._items.clear()
        self._own_lists.forget(self._config.source)
        if self._watches is not None:
            # Nothing reports updates any more: watching clients should read again, and subscribe again.
            self._watches.end()
