"""One upstream: what it offers, kept on show, and the calls into it. Its connection is the `Supervisor`'s.

Contract: CHG-1, ISO-4.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from goat_mcp.core.calling_client import RootsOf
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.upstreams.cache.offering_cache import OfferingCache
from goat_mcp.upstreams.cache.tool_cache import ToolCache
from goat_mcp.upstreams.cache.warm_catalog import KnownAsks
from goat_mcp.upstreams.calls.calls import UpstreamCalls
from goat_mcp.upstreams.calls.output_check import OutputCheck
from goat_mcp.upstreams.client_views import ClientViews
from goat_mcp.upstreams.config.entry import (
    RootOf,
    UpstreamConfig,
    first_existing,
    follows_client,
    needs_workspace,
    roots_in,
    start_root,
)
from goat_mcp.upstreams.connection_pool import ConnectionPool, PooledRequest
from goat_mcp.upstreams.diagnosis import upstream_status
from goat_mcp.upstreams.eras import ConnectionEra, UpstreamEras
from goat_mcp.upstreams.faults import LoginRequired
from goat_mcp.upstreams.oauth.logins import LazyLogin
from goat_mcp.upstreams.pinning.pin_gate import PinGate
from goat_mcp.upstreams.pinning.pin_lock import LockContent
from goat_mcp.upstreams.pinning.pins import UpstreamPins
from goat_mcp.upstreams.retry_policy import retry_policies
from goat_mcp.upstreams.status import UpstreamStatus
from goat_mcp.upstreams.supervisor import Supervisor
from goat_mcp.upstreams.upstream_services import UpstreamServices

if TYPE_CHECKING:  # loaded by the first connection, or the first request for a resource or a prompt
    from goat_mcp.upstreams.calls.login_elicitation import LoginElicitation
    from goat_mcp.upstreams.calls.resource_requests import ResourceRequests
    from goat_mcp.upstreams.calls.visible_results import VisibleResults
    from goat_mcp.upstreams.pinning.pin_review import Comparison
    from goat_mcp.upstreams.transports.callers import Callers
    from goat_mcp.upstreams.transports.connection import Connection

DRAIN_LOOK_S = 0.05
HEARS_WITHIN_S = 0.5
"""So long the first list waits for the stream that tells of changes: what changed in between would be missed."""
AFTER_LOGIN_S = 10.0
"""How long the first list may take where a login has used up the time of its call."""


class Upstream:
    """One entry of the user's. `run` is its task; everything else may be called from other tasks of the same loop."""

    def __init__(self, config: UpstreamConfig, services: UpstreamServices, login: LazyLogin | None) -> None:
        self.config = config
        self._services = services
        telemetry, roots, warm = services.telemetry, services.roots, services.warm
        self._roots = roots
        self._limits = services.limits
        self._telemetry = telemetry
        self._first_outcome = anyio.Event()
        self._login = login
        self._logins: LoginElicitation | None = None
        self._group: anyio.abc.TaskGroup | None = None
        retry_of = retry_policies(self._limits.retry, is_shared=not (login and login.endpoint.has_workspace_logins))
        self._needs_workspace = needs_workspace(config.target)
        self._follows_client = follows_client(config.target) and config.share is not True
        self._asks, self.eras = KnownAsks(config, warm), UpstreamEras(config, warm)

        def declare(capabilities: Mapping[str, Any]) -> dict[str, Any]:
            from goat_mcp.upstreams.transports.server_requests import declared_for

            return declared_for(capabilities, config.allow)

        def make(
            declared: Callable[[], Mapping[str, Any]],
            workspace: RootOf,
            account: Callable[[], str],
            is_leader: bool,
            era: ConnectionEra,
        ) -> Supervisor:
            asks, root_of, share = self._asks, partial(start_root, workspace, roots), services.sharing.connect
            return Supervisor(
                config,
                telemetry=telemetry,
                on_connected=self._on_connected,
                callers=partial(
                    self._callers,
                    declared,
                    partial(roots_in, workspace, roots) if self._needs_workspace else roots,
                ),
                retry=retry_of(),
                root_of=root_of,
                failed=self._failed,
                stays=is_leader and config.start == "eager",
                login=login and login.at(root_of),
                limits=services.limits,
                connect=share(services.connect, config, root_of, account, asks=asks.has_asked, learn_asks=asks.learn),
                on_change=services.on_change,
                era=era,
            )

        def asks_for_roots(workspace: Path | None) -> bool:
            return not (roots(True) or (self._needs_workspace and workspace is not None))

        self._pool = ConnectionPool(config, make, declare, self._asks.has_asked, asks_for_roots, self.eras)
        self._supervisor = self._pool.leader.supervisor
        self._output = OutputCheck(config.name, config.output_check, telemetry)
        self.pins = UpstreamPins(config, services.pins.lock, services.pins.definitions, telemetry)
        gate = self._gate = PinGate(self.pins)
        self._visible = _visible_results(config)
        self.calls = UpstreamCalls(
            config,
            self._connection_for,
            self._output,
            uris=services.uris,
            gate=gate,
            roots=roots,
            want=self._supervisor.want,
            visible=self._visible,
            elicit_login=self.elicit_login if self._login is not None else None,
            requests=lambda: self.requests,
        )
        self._tools = ToolCache(
            config, registry=services.registry, warm=warm, telemetry=telemetry, relay=self.calls, gate=gate
        )
        self.offerings = OfferingCache(
            config,
            offers=services.offers,
            warm=warm,
            telemetry=telemetry,
            limits=self._limits,
            gate=PinGate(self.pins, lambda connection: connection.notices.is_any),
            on_listed=self._offered,
        )
        self.views = ClientViews(
            config,
            self._pool,
            self._tools,
            self.offerings,
            own_lists=services.own_lists,
            workspace_of=self._workspace_of,
            limits=services.limits,
            telemetry=telemetry,
            on_updated=services.on_updated,
        )
        self._list_problem = ""

    @cached_property
    def requests(self) -> ResourceRequests:
        """Its way for reads, prompts and completions."""
        from goat_mcp.upstreams.calls.resource_requests import ResourceRequests

        async def admit(method: str, params: Mapping[str, Any], connection: Connection, max_wait_s: float) -> None:
            # The connections of single clients are not listed: their requests are held against what the leader lists.
            is_listed = connection is self._supervisor.last_connection
            await self.offerings.admit(method, params, connection, max_wait_s, is_listed=is_listed)

        return ResourceRequests(
            self.config,
            self._connection_for,
            self.calls.limiter,
            self._roots,
            admit=admit,
            visible=self._visible,
            elicit_login=self.elicit_login if self._login is not None else None,
        )

    def _connection_for(self, ctx: ToolContext | None) -> AbstractAsyncContextManager[Supervisor]:
        """For a request of this client; the leader where none is behind it. Entering raises `ToolError`."""
        return nullcontext(self._supervisor) if ctx is None else PooledRequest(self._pool, self._workspace_of, ctx)

    async def _workspace_of(self, ctx: ToolContext) -> Path | None:
        """What this client's process is started in; None where that is the same for all clients."""
        client = ctx.client
        if self._follows_client:
            # A client of the stateless era would have to be asked again with each call, and for nothing but this.
            if client is None or client.is_stateless or "roots" not in client.capabilities or self._roots(True):
                return None
            return first_existing(await client.roots())
        if not self._needs_workspace:
            return None
        has_some = client is not None and "roots" in client.capabilities
        known = self._roots(has_some) or (await client.roots() if has_some and client is not None else ())
        return next(iter(known or self._roots(False)), None)

    async def elicit_login(self, ctx: ToolContext, wanted: LoginRequired) -> None:
        """See `LoginElicitation.ask`."""
        if self._login is None or self._group is None:
            raise wanted
        if self._logins is None:
            from goat_mcp.upstreams.calls.login_elicitation import LoginElicitation

            services = (self._group.start_soon, self._telemetry, self._workspace_of)
            self._logins = LoginElicitation(self.config, self._login, *services)
        await self._logins.ask(ctx, wanted)

    async def elicit_first_login(self, ctx: ToolContext) -> None:
        """Where nothing is known of it for want of a login: offer that to this client, and wait for the first list."""
        try:
            self._supervisor.check()
        except LoginRequired as wanted:
            try:
                await self.elicit_login(ctx, wanted)
                self._supervisor.check()
            except ToolError:
                # What the call is told instead says that a login is wanted.
                return
            with anyio.move_on_after(max(ctx.wait_left_s(), AFTER_LOGIN_S)):
                await self.relist()
        except ToolError:
            return

    def shared_processes(self) -> tuple[int, ...]:
        """Those that it uses now, and other sessions may, too."""
        return self._pool.shared_processes()

    def session_ended(self, session_key: str) -> None:
        """A client is gone."""
        if self._logins is not None:
            self._logins.session_ended(session_key)
        self._pool.session_ended(session_key)

    def roots_changed(self, session_key: str) -> None:
        """A client has other roots now."""
        self._pool.roots_changed(session_key)

    def workspace_changed(self) -> bool:
        """The workspace is known now, or is another. Returns whether it is listed again for that."""
        if not self._pool.workspace_changed():
            return False
        if self._first_outcome.is_set() and not self.is_known:
            self._first_outcome = anyio.Event()
        if self.offerings.first_outcome.is_set() and not self.offerings.is_known:
            self.offerings.first_outcome = anyio.Event()
        return True

    def _offered(self) -> None:
        self.views.show()
        self._services.on_change()

    @property
    def tools_ttl_ms(self) -> int | None:
        """How long its list of tools stays fresh; None where it has none."""
        return self._tools.ttl_ms if self._tools.count else None

    @property
    def is_known(self) -> bool:
        """Whether its tools are known, from now or from an earlier run."""
        return self._tools.is_known

    def load_warm(self) -> None:
        """Show the tools of the last run. Nothing is started."""
        version = self._tools.load_warm()
        if version is not None:
            self._supervisor.known_version = version or None
            self.eras.load(version)
            self._first_outcome.set()

    async def compare(self, before: LockContent) -> Comparison:
        """Have it listed now, and hold that against the lock as it was."""
        from goat_mcp.upstreams.pinning.pin_review import Comparison, compared

        name, server = self.config.name, self.config.server
        if self.pins.is_off:
            return Comparison(name, is_off=True)
        try:
            connection = await self._supervisor.ready(self._start_wait_s, to_the_end=True)
        except ToolError as failure:
            return Comparison(name, problem=failure.message)
        await self._gate.settled(connection, self._limits.list_timeout_s)
        await self.offerings.settled(connection, self._limits.list_timeout_s)
        if problem := self._list_problem or self.offerings.problem:
            return Comparison(name, problem=problem)
        return compared(name, server, before, self.pins.lock.content().of(server), self.pins.seen())

    def why_missing(self, name: str) -> ToolError | None:
        """Where its tool of that exposed name is withheld until somebody approves it: that."""
        return self._tools.why_missing(name)

    def repin(self) -> None:
        """Show what the pins allow now: somebody has changed them."""
        self._tools.repin()
        self.offerings.repin()
        self.views.show()

    def retire(self) -> None:
        """Its entry has gone or changed: no new calls, nothing more on show. What runs goes on (CFG-4)."""
        self._tools.close()
        self.offerings.close()
        self.calls.close()
        self._first_outcome.set()
        self.views.end()

    async def drained(self, max_wait_s: float) -> None:
        """Wait until no call of it is under way."""
        with anyio.move_on_after(max_wait_s):
            while not self.calls.is_idle:  # noqa: ASYNC110  # calls and reads end in several places
                await anyio.sleep(DRAIN_LOOK_S)

    async def first_outcome(self, ctx: ToolContext | None = None) -> None:
        """Start it, and wait for its first list or its first failure. `ctx` is who wants to see the list."""
        self._pool.want(ctx)
        await self._first_outcome.wait()

    async def relist(self) -> None:
        """Start it, and wait for the outcome, whatever is known from before."""
        self._first_outcome = anyio.Event()
        await self.first_outcome()

    @property
    def _start_wait_s(self) -> float:
        """A little longer than a start may take: so that its own failure is heard."""
        return self._supervisor.start_timeout_s + 1.0

    async def until_started(self) -> None:
        """Start it, and wait until it is connected and has listed its tools, or has failed."""
        with anyio.move_on_after(self._start_wait_s + self._limits.list_timeout_s), suppress(ToolError):
            if self.is_known:
                await self._supervisor.ready(self._start_wait_s, to_the_end=True)
            else:
                await self.first_outcome()

    async def first_offer(self) -> None:
        """Know what it offers beside tools: from an earlier run, or else by starting it and waiting for its lists."""
        self.offerings.want()
        if not self.offerings.is_known:
            self._supervisor.want()
            await self.offerings.first_outcome.wait()

    async def run(self) -> None:
        """Live until cancelled."""
        try:
            async with anyio.create_task_group() as self._group:
                self._group.start_soon(self.views.keep_placed)
                await self._pool.run()
        finally:
            self._group = None

    def _callers(self, declared: Callable[[], Mapping[str, Any]], roots: RootsOf) -> Callers:
        from goat_mcp.upstreams.transports.callers import Callers

        return Callers(self.config.name, declared(), allow=self.config.allow, roots=roots, asked=self._asks.learn)

    def _failed(self) -> None:
        self._first_outcome.set()
        self.offerings.first_outcome.set()

    async def _on_connected(self, connection: Connection) -> None:
        is_leader, hears = connection is self._supervisor.last_connection, anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(self.views.keep_watched, connection, hears)
            if is_leader:
                with anyio.move_on_after(HEARS_WITHIN_S):
                    await hears.wait()
            hears.set()
            # The others are for the calls of single clients.
            group.start_soon(self.offerings.keep if is_leader else self.views.keep_offered, connection)
            group.start_soon(self._keep_listed, connection)

    async def _keep_listed(self, connection: Connection) -> None:
        """List now and after each notice of change, at most once per interval."""
        from goat_mcp.upstreams.pinning.pinned_resources import settle_instructions

        await anyio.to_thread.run_sync(settle_instructions, self.pins, connection.instructions)
        while True:
            connection.tools_changed = anyio.Event()
            listed_s = time.monotonic()
            listed = await self._list(connection)
            await self.pins.scan_first_sights()
            if listed:
                await connection.tools_changed.wait()
            else:
                with anyio.move_on_after(self._limits.relist_after_failure_s):
                    await connection.tools_changed.wait()
            await anyio.sleep(max(0.0, listed_s + self._limits.relist_interval_s - time.monotonic()))

    async def _list(self, connection: Connection) -> bool:
        if connection is not self._supervisor.last_connection:
            return not await self.views.list_tools(connection)
        version = self._supervisor.known_version or ""
        self._list_problem = await self._tools.refresh(connection, version, self._limits.list_timeout_s)
        self.views.show()
        self._first_outcome.set()
        if self._list_problem:
            self._telemetry.warning(
                "upstream did not list its tools", upstream=self.config.name, problem=self._list_problem
            )
        self._services.on_change()
        return not self._list_problem

    def unusable_schemas(self) -> list[str]:
        """Its tools whose calls pass without a check of their arguments, each with the reason. Blocks: for a thread."""
        return [] if self.config.input_check == "off" else self._tools.unusable_schemas()

    def path_of(self, name: str) -> tuple[str, ...]:
        """The gateways that a tool comes through, by the name clients see."""
        return self._tools.path_of(name)

    def status(self) -> UpstreamStatus:
        """How it stands now."""
        return upstream_status(
            self.config,
            self._supervisor,
            self._list_problem,
            tools=self._tools,
            offerings=self.offerings,
            pins=self.pins,
            calls=self.calls,
            output=self._output,
            visible=self._visible,
        )


def _visible_results(config: UpstreamConfig) -> VisibleResults | None:
    if not config.sanitize:
        return None
    from goat_mcp.upstreams.calls.visible_results import VisibleResults

    return VisibleResults(config.name)
