"""Which of its connections an upstream's call takes (WSP-1).

A handshake declares what one client can do, and its questions do not say whose they are. So a connection is shared
by clients of one principal that can do the same; where the upstream asks, or nobody knows yet whether it does, by one
session only. In the stateless era each request says both, and one connection serves all clients of a principal.
Clients of the two eras never share one unless the upstream speaks only one of them (ERA-2b).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import anyio
import anyio.abc

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.eras import ConnectionEra, Era, UpstreamEras
from goat_mcp.upstreams.sharing.shared_connect import account_of
from goat_mcp.upstreams.supervisor import Supervisor

MAX_INSTANCES = 32
"""Connections of one upstream at a time."""
MAX_FIRST = 32
"""Beyond those, where all are in use: for principals who have none. So nobody is shut out by a few who have many."""
MAX_OF_ONE = 24
"""Those of one principal in use at a time: calls that wait for an answer have theirs for minutes."""
ROOTS = "roots"
CALLS_WITHOUT_QUESTION = 32
"""An upstream that has asked nothing in so many calls is taken for one that does not ask."""


def _nobody_cares() -> None:
    """Nothing depends on who has which connection."""


Audience = tuple[str, str, Mapping[str, Any] | None]
"""Who may share a connection: those with the same workspace, principal and, but in the stateless era, capabilities."""


@dataclass(eq=False)
class PooledConnection:
    """One connection and who it is for. Nobody yet, where `audience` is None: it has only been listed."""

    supervisor: Supervisor
    era: ConnectionEra
    declared: Mapping[str, Any] = field(default_factory=dict[str, Any])
    audience: Audience | None = None
    workspace: Path | None = None
    sessions: set[str] = field(default_factory=set[str])
    is_only_listed: bool = False
    """Whether its audience has done no more than list. The first call of anybody else's takes it over: what it tells of
    its lists and resources should come from where the calls go."""
    users: int = 0
    used_s: float = 0.0
    account: str | None = None
    """Whose it was when it was connected to a process that others share, too; None if it never was."""
    must_move: bool = False
    """Whether the workspace became another while it was in use. Nobody more uses it there."""
    life: anyio.CancelScope | None = None
    """Its supervisor's, once that runs."""

    @property
    def principal(self) -> str | None:
        """Whose it is."""
        return None if self.audience is None else self.audience[1]

    @property
    def is_free(self) -> bool:
        """Whether it has no connection and nobody is about to use one."""
        return not self.users and self.supervisor.is_free


Make = Callable[
    [Callable[[], Mapping[str, Any]], Callable[[], Path | None], Callable[[], str], bool, ConnectionEra], Supervisor
]
"""Makes a supervisor from what its connection declares, whose workspace it is for, whose account a shared process is
used for, whether it is the leader, and the era of its clients."""
Declare = Callable[[Mapping[str, Any]], dict[str, Any]]
"""From what a client can do to what an upstream is told of it."""


class ConnectionPool:
    """Of one upstream. The first is the leader: it is there from the start, and its lists are what clients see."""

    def __init__(
        self,
        config: UpstreamConfig,
        make: Make,
        declare: Declare,
        asks: Callable[[], bool],
        asks_for_roots: Callable[[Path | None], bool],
        eras: UpstreamEras,
    ) -> None:
        """`asks`: whether the upstream has ever asked a client anything. `asks_for_roots`: whether roots are asked of
        the client if a connection is for that workspace.
        """
        self._config = config
        self._asks_for_roots = asks_for_roots
        self._make = make
        self._declare = declare
        self._asks = asks
        self.on_moved: Callable[[], None] = _nobody_cares
        """Called when a session has another connection than before."""
        self._eras = eras
        self._group: anyio.abc.TaskGroup | None = None
        self._calls = 0
        self._all: list[PooledConnection] = []
        self._latest: dict[str, PooledConnection] = {}
        """By session: the connection of its last call. It has another one than before if its roots became known."""
        self.leader = self._new(is_leader=True)

    async def run(self) -> None:
        """Live until cancelled."""
        async with anyio.create_task_group() as self._group:
            await self.leader.supervisor.run()

    def want(self, ctx: ToolContext | None) -> None:
        """Start the leader for a client that wants a list, if nobody has started it."""
        leader = self.leader
        if leader.audience is None and leader.is_free and ctx is not None:
            era = self._era_of(ctx)
            self._claim(leader, ctx, None, self._audience(ctx, None, era), era)
            leader.is_only_listed = True
        leader.supervisor.want()

    def enter(self, ctx: ToolContext, workspace: Path | None) -> PooledConnection:
        """The connection for a call, this caller's until `leave`. Raises `ToolError(BUSY)` if there are too many.

        `workspace`: the caller's, if the upstream works in that.
        """
        instance = self.leader if self._group is None else self._for(ctx, workspace)
        self._calls += 1
        instance.users += 1
        instance.used_s = time.monotonic()
        return instance

    def leave(self, instance: PooledConnection) -> None:
        instance.users -= 1
        if instance.users:
            return
        if instance.must_move:
            instance.must_move = False
            instance.supervisor.relocate()
        if len(self._all) > MAX_INSTANCES and (idle := [one for one in self._idle() if one is not self.leader]):
            self._all.remove(idle[0])
            if idle[0].life is not None:
                idle[0].life.cancel()

    def session_ended(self, session_key: str) -> None:
        """A client is gone. What only it could use, nobody can use any more."""
        self._latest.pop(session_key, None)
        for one in self._all:
            if session_key in one.sessions and one is not self.leader and self._is_exclusive(one.era.current):
                one.sessions.discard(session_key)
                if not one.sessions and not one.users:
                    self._give_up(one)

    def roots_changed(self, session_key: str) -> None:
        """A client has other roots now: the upstream hears of it with that client's next request."""
        for one in self._all:
            if session_key in one.sessions and (connection := one.supervisor.last_connection) is not None:
                connection.callers.roots_changed()

    def workspace_changed(self) -> bool:
        """What was started for the old one restarts as soon as nobody uses it. Returns whether the leader is."""
        for one in self._all:
            one.must_move = bool(one.users) and one.supervisor.is_in_other_workspace
        moved = [one for one in self._all if not one.users and one.supervisor.relocate()]
        return self.leader in moved

    def of_session(self, session_key: str) -> Supervisor | None:
        """The connection that this session's calls take: the last one did; None if it has none yet."""
        return self.sessions().get(session_key)

    def of_connection(self, connection: object) -> Supervisor | None:
        """Whose connection it is."""
        return next((one.supervisor for one in self._all if one.supervisor.last_connection is connection), None)

    def sessions(self) -> Mapping[str, Supervisor]:
        """As `of_session`, of all."""
        found: dict[str, Supervisor] = {}
        for one in self._in_service():
            for session_key in one.sessions:
                if session_key not in found or self._latest.get(session_key) is one:
                    found[session_key] = one.supervisor
        return found

    def _in_service(self) -> list[PooledConnection]:
        return [one for one in self._all if one.audience is not None and not one.must_move and not one.is_only_listed]

    def shared_processes(self) -> tuple[int, ...]:
        """The processes of its connections that other sessions may use, too."""
        connections = [one.supervisor.last_connection for one in self._all]
        shared = [connection.sharing for connection in connections if connection is not None]
        return tuple(one.pid for one in shared if one is not None and one.is_shared)

    def _era_of(self, ctx: ToolContext) -> Era | None:
        """The era in which this caller's connection speaks; None if that makes no difference to it."""
        if ctx.client is None:
            return self.leader.era.current
        return self._eras.used_for(Era.STATELESS if ctx.client.is_stateless else Era.HANDSHAKE)

    def _is_stateless(self, era: Era | None) -> bool:
        return era is Era.STATELESS and self._eras.speaks.get(era) is True

    def _is_exclusive(self, era: Era | None) -> bool:
        """Whether a connection whose client can be asked is one session's."""
        if self._is_stateless(era):
            return False
        return self._config.scope == "session" or self._calls < CALLS_WITHOUT_QUESTION or self._asks()

    def _for(self, ctx: ToolContext, workspace: Path | None) -> PooledConnection:
        era = self._era_of(ctx)
        audience = self._audience(ctx, workspace, era)
        instance = self._matching(ctx, audience, era)
        if instance is None or not instance.users:
            self._check_share(ctx.principal)
        instance = instance or self._unused(era) or self._added(ctx.principal)
        self._claim(instance, ctx, workspace, audience, era)
        instance.is_only_listed = False
        if self._latest.get(ctx.session_key) is not instance:
            self._latest[ctx.session_key] = instance
            self.on_moved()
        return instance

    def _check_share(self, principal: str) -> None:
        if len(self._all) >= MAX_OF_ONE and (used := self._used_by(principal)) >= MAX_OF_ONE:
            raise ToolError(
                ErrorCode.BUSY,
                f"upstream {self._config.name} works for {used} calls of yours, each with its own connection",
                "Call again when one of them has ended. Those that have asked wait for an answer.",
            )

    def _used_by(self, principal: str) -> int:
        return sum(1 for one in self._all if one.users and one.principal == principal)

    def _matching(self, ctx: ToolContext, audience: Audience, era: Era | None) -> PooledConnection | None:
        for one in self._all:
            if one.era.current is not era or not _is_for(one, audience) or one.must_move:
                continue
            if self._may_share(one, ctx):
                return one
        return None

    def _may_share(self, one: PooledConnection, ctx: ToolContext) -> bool:
        if not self._is_exclusive(one.era.current) or not (
            self._can_be_asked(ctx, one.workspace) or self._config.scope == "session"
        ):
            return True
        if ctx.client is not None and ctx.client.is_stateless and one.users:
            # Clients of that era have no sessions that could be told apart.
            return False
        return one.sessions <= {ctx.session_key}

    def _can_be_asked(self, ctx: ToolContext, workspace: Path | None) -> bool:
        """Whether the upstream may ask what only this client can answer."""
        declared = self._declared_for(ctx)
        if ROOTS in declared and self._asks_for_roots(workspace):
            return True
        return any(kind != ROOTS for kind in declared)

    def _unused(self, era: Era | None) -> PooledConnection | None:
        """One that is nobody's: never claimed, or not for calls, or without a connection. One of the other era is
        connected again for it, so that there is no second process; where there is none, both stay."""
        unused = (one for one in self._all if not one.users)
        may_change = isinstance(self._config.target, StdioLaunch)
        return next(
            (
                one
                for one in unused
                if one.is_free
                or ((one.audience is None or one.is_only_listed) and (may_change or one.era.current in (None, era)))
            ),
            None,
        )

    def _added(self, principal: str) -> PooledConnection:
        if len(self._all) < MAX_INSTANCES:
            return self._new(is_leader=False)
        if idle := self._idle():
            self._give_up(idle[0])
            return idle[0]
        if len(self._all) < MAX_INSTANCES + MAX_FIRST and not self._used_by(principal):
            return self._new(is_leader=False)
        raise ToolError(
            ErrorCode.BUSY,
            f"upstream {self._config.name} works for {len(self._all)} clients, each with its own connection",
            "Call again when one of their calls has ended.",
        )

    def _idle(self) -> list[PooledConnection]:
        """Those that nobody uses: of whoever has most first, and of one's own the longest unused."""
        number = Counter(one.principal for one in self._all)
        return sorted((one for one in self._all if not one.users), key=lambda one: (-number[one.principal], one.used_s))

    def _give_up(self, instance: PooledConnection) -> None:
        instance.supervisor.release()
        instance.audience, instance.sessions = None, set()
        self.on_moved()

    def _new(self, *, is_leader: bool) -> PooledConnection:
        instance: PooledConnection

        def declared() -> Mapping[str, Any]:
            return instance.declared

        def workspace() -> Path | None:
            return instance.workspace

        def account() -> str:
            instance.account = account_of(instance.principal)
            return instance.account

        era = ConnectionEra(self._eras)
        supervisor = self._make(declared, workspace, account, is_leader, era)
        instance = PooledConnection(supervisor, era, self._declare({}))
        self._all.append(instance)
        if self._group is not None:
            self._group.start_soon(self._live, instance)
        return instance

    async def _live(self, instance: PooledConnection) -> None:
        if instance in self._all:
            with anyio.CancelScope() as instance.life:
                await instance.supervisor.run()

    def _claim(
        self, instance: PooledConnection, ctx: ToolContext, workspace: Path | None, audience: Audience, era: Era | None
    ) -> None:
        if instance.era.current is not era or not _is_for(instance, audience):
            declared = self._declared_for(ctx)
            is_declared = self._is_stateless(era) or declared == instance.declared
            is_same = is_declared and workspace == instance.workspace and instance.era.current is era
            is_same = is_same and instance.account in (None, account_of(ctx.principal))
            if not instance.supervisor.is_free and not is_same:
                # It was started for a list only, before this client was known.
                instance.supervisor.restart()
            instance.audience, instance.declared, instance.workspace = audience, declared, workspace
            instance.era.want(era)
            instance.sessions = set()
        instance.sessions.add(ctx.session_key)

    def _audience(self, ctx: ToolContext, workspace: Path | None, era: Era | None) -> Audience:
        return str(workspace), ctx.principal, None if self._is_stateless(era) else self._declared_for(ctx)

    def _declared_for(self, ctx: ToolContext) -> dict[str, Any]:
        return self._declare(ctx.client.capabilities if ctx.client is not None else {})


def _is_for(instance: PooledConnection, audience: Audience) -> bool:
    """Also one that was claimed before its era was known: what its client can do makes no difference any more then."""
    if instance.audience is None or instance.audience[:2] != audience[:2]:
        return False
    declared = audience[2]
    return declared is None or declared == instance.audience[2]


@dataclass(slots=True, eq=False)
class PooledRequest:
    """One request's connection, once it is known where its client works."""

    pool: ConnectionPool
    workspace_of: Callable[[ToolContext], Awaitable[Path | None]]
    ctx: ToolContext
    _connection: PooledConnection = field(init=False)

    async def __aenter__(self) -> Supervisor:
        self._connection = self.pool.enter(self.ctx, await self.workspace_of(self.ctx))
        return self._connection.supervisor

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.pool.leave(self._connection)
