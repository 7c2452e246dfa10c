"""One task per connection to an upstream: it starts it when wanted, and reconnects. What it is for is `Upstream`'s.

Nothing an upstream does reaches beyond its own supervisor (D4). Contract: LIF-1 to LIF-9, ISO-1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.config.entry import HttpEndpoint, RootOf, StdioLaunch, UpstreamConfig, in_workspace
from goat_mcp.upstreams.config.launchers import called_too_early, start_timeout_s
from goat_mcp.upstreams.eras import ConnectionEra
from goat_mcp.upstreams.faults import Fault, LoginRequired, StartFailure, TransportFault, start_failure_in
from goat_mcp.upstreams.oauth.logins import LazyLogin
from goat_mcp.upstreams.retry_policy import Refusal, RetryPolicy, SupervisorLimits
from goat_mcp.upstreams.status import ReasonCode, UpstreamFailure, UpstreamState

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.transports.callers import Callers
    from goat_mcp.upstreams.transports.connection import Connection


Connect = Callable[..., "AbstractAsyncContextManager[Connection]"]
OnConnected = Callable[["Connection"], Coroutine[Any, Any, None]]
"""What runs beside a connection as long as it lives."""


class _Attempt:
    """The next or running try to connect, which calls can wait for."""

    def __init__(self) -> None:
        self.settled = anyio.Event()
        self.connection: Connection | None = None
        self.failure: ToolError | None = None


@dataclass
class _Life:
    """One connection from its start to its end."""

    connection: Connection
    over: anyio.Event = field(default_factory=anyio.Event)
    probed: anyio.Event = field(default_factory=anyio.Event)
    is_failure: bool = False
    why: str = ""

    def end(self, *, is_failure: bool, why: str) -> None:
        if not self.over.is_set():
            self.is_failure, self.why = is_failure, why
            self.over.set()


class Supervisor:
    """Owns one connection. `run` is its task; everything else may be called from other tasks of the same loop."""

    def __init__(
        self,
        config: UpstreamConfig,
        *,
        telemetry: Telemetry,
        on_connected: OnConnected,
        callers: Callable[[], Callers],
        retry: RetryPolicy,
        root_of: RootOf,
        failed: Callable[[], None],
        stays: bool,
        login: LazyLogin | None,
        limits: SupervisorLimits,
        connect: Connect,
        on_change: Callable[[], None],
        era: ConnectionEra,
    ) -> None:
        """`callers` are made again for each connection; `retry` is the whole upstream's. `root_of`: see there.

        `stays`: it is started unasked and not ended for lack of use. `failed` is told of each try that came to
        nothing, `on_change` of each change of state.
        """
        self.config = config
        self.start_timeout_s = start_timeout_s(config, limits)
        self._telemetry = telemetry
        self._on_connected = on_connected
        self._callers = callers
        self._failed = failed
        self._stays = stays
        self._root_of = root_of
        self._login = login
        self._refusal: Refusal | None = None
        """What its own last try met."""
        self._retry_now = anyio.Event()
        self._limits = limits
        self._connect = connect
        self._on_change = on_change
        self._era = era
        self._retry = retry
        self._attempt = _Attempt()
        self._life: _Life | None = None
        self._demand = anyio.Event()
        self._asked_s = float("-inf")
        self._in_use = 0
        self._starting: anyio.CancelScope | None = None
        self._is_outdated = False
        self._last_target: StdioLaunch | HttpEndpoint | None = None
        self._lacks_workspace = False
        """Whether there was no folder to start it in. Nothing was tried, so there is nothing to wait out."""
        self.known_version: str | None = None
        """The protocol revision that was proved last."""
        self.state = UpstreamState.IDLE
        self.since_s = time.monotonic()
        self.reason_code: ReasonCode | Literal[""] = ""
        self.detail = ""
        self.last_connection: Connection | None = None
        self.last_failure: UpstreamFailure | None = None

    # What others ask of it

    def want(self) -> None:
        """Start it, and keep it as long as it is asked for."""
        self._asked_s = time.monotonic()
        self._lacks_workspace = False
        self._demand.set()

    @property
    def is_free(self) -> bool:
        """Whether it neither has a connection nor tries to get one, and nobody waits for it."""
        return self.state in (UpstreamState.IDLE, UpstreamState.STOPPED) and not self._in_use

    def restart(self) -> None:
        """Connect again, for it is to declare something else now. Nothing must be in flight."""
        self._is_outdated = True
        if self._life is not None:
            self.drop(self._life.connection, is_failure=False, why=_OUTDATED)
        elif self._starting is not None:
            self._starting.cancel()

    @property
    def is_in_other_workspace(self) -> bool:
        """Whether it was started for another workspace than there is now, or could not be for want of one."""
        is_started = self._last_target is not None and self.state not in (UpstreamState.IDLE, UpstreamState.STOPPED)
        try:
            return (is_started or self._lacks_workspace) and self._target() != self._last_target
        except StartFailure:
            return False

    def relocate(self) -> bool:
        """Start again, at once, what is elsewhere. Nothing must be in flight. Returns whether it does."""
        if not self.is_in_other_workspace:
            return False
        if self._lacks_workspace:
            self.want()
        else:
            # What it met there says nothing of here.
            self._retry.worked()
            self._retry_now.set()
            self.restart()
        return True

    def release(self) -> None:
        """Nobody needs it any more."""
        self._asked_s = float("-inf")
        if self._life is not None:
            self.drop(self._life.connection, is_failure=False, why=_IDLE)

    @property
    def next_try_s(self) -> float | None:
        """How long until the next try to connect; None where none is due."""
        waits = self.state in (UpstreamState.WAITING, UpstreamState.FAILED) and not self._lacks_workspace
        return self._retry.wait_s(time.monotonic()) if waits else None

    def check(self) -> None:
        if self._retry.refusal is not None and self._is_outdated_refusal(self._retry.refusal):
            self._retry.worked()
        if self._refusal is not None and self._is_outdated_refusal(self._refusal):
            self._refusal = None
            self._retry_now.set()
        if self._retry.is_open(time.monotonic()):
            raise self._down()

    async def ready(self, max_wait_s: float, *, to_the_end: bool = False) -> Connection:
        """`to_the_end`: wait as long as a start may take, and not only as long as a call should."""
        life = self._life
        if life is not None and not life.over.is_set() and not life.connection.closed.is_set():
            self._asked_s = time.monotonic()
            return life.connection
        self.check()
        self.want()
        if self._attempt.settled.is_set():
            # It led to the connection that has just ended.
            self._attempt = _Attempt()
        attempt = self._attempt
        with anyio.move_on_after(max_wait_s if to_the_end else min(max_wait_s, self._limits.connect_wait_s)):
            await attempt.settled.wait()
        if attempt.connection is not None:
            return attempt.connection
        # What it has failed with before says more.
        raise attempt.failure or (
            self._down() if self.reason_code else called_too_early(self.config, self.start_timeout_s)
        )

    def begin_use(self) -> None:
        self._in_use += 1

    def end_use(self) -> None:
        self._in_use -= 1

    def drop(self, connection: Connection, *, is_failure: bool, why: str) -> None:
        life = self._life
        if life is not None and life.connection is connection and not life.over.is_set():
            self._attempt = _Attempt()
            life.end(is_failure=is_failure, why=why)

    def forget_version(self) -> None:
        self.known_version = None
        self._era.forget()

    def worked(self) -> None:
        if self._retry.failures:
            self._retry.worked()
        if self._retry.refused_request is not None:
            self._retry.let_in()
            self._on_change()

    def refused(self, fault: Fault) -> None:
        stored = self._login.stored() if self._login is not None else None
        self._retry.refused_request = Refusal(fault.detail, stored, fault.wanted_scopes)
        self._on_change()

    @property
    def refused_because(self) -> str:
        """Why requests are refused though the connection stands, as far as is known; empty where they are not."""
        refusal = self._retry.refused_request
        return "" if refusal is None or self._is_outdated_refusal(refusal) else refusal.why

    def request_failed(self, why: str) -> None:
        life = self._life
        # A connection that ended is counted where it ends.
        if life is not None and not life.connection.closed.is_set() and not life.over.is_set():
            self._retry.failed(time.monotonic())
            self.detail = why

    def probe(self, connection: Connection) -> None:
        life = self._life
        if life is not None and life.connection is connection:
            life.probed.set()

    # Its task

    async def run(self) -> None:
        """Live until cancelled."""
        try:
            while True:
                await self._until_wanted()
                self._retry_now = anyio.Event()
                with anyio.move_on_after(self._retry.wait_s(time.monotonic())):
                    await self._retry_now.wait()
                await self._live_once()
        finally:
            self._enter(UpstreamState.STOPPED)

    def _is_wanted(self) -> bool:
        if self._lacks_workspace:
            return False
        asked = time.monotonic() - self._asked_s < self._limits.idle_reap_s
        return self._stays or asked or bool(self._in_use)

    async def _until_wanted(self) -> None:
        while not self._is_wanted():
            if self.state is not UpstreamState.FAILED:
                self._enter(UpstreamState.IDLE)
            self._demand = anyio.Event()
            await self._demand.wait()

    async def _live_once(self) -> None:
        """One connection, from its start to its end; failures are noted, never raised."""
        self._enter(UpstreamState.STARTING)
        started_s = time.monotonic()
        life: _Life | None = None
        try:
            with anyio.CancelScope() as self._starting:
                life = await self._connect_and_serve()
        except Exception as error:
            if self._life is not None or not self._era.is_given_up(error):
                self._note_failure(error)
            return
        finally:
            self._life = self._starting = None
        if life is None:
            return  # it is to be started in another way, and nobody had it yet
        if self._attempt.settled.is_set():
            self._attempt = _Attempt()
        if not life.is_failure:
            if life.why == _IDLE:
                self._asked_s = float("-inf")
            return
        if time.monotonic() - started_s > self._limits.stable_after_s:
            self._retry.worked()
        self._retry.failed(time.monotonic())
        self._failed_because(ReasonCode.LOST, life.why)
        self._telemetry.warning("upstream lost", upstream=self.config.name, problem=life.why)
        if self._retry.is_open(time.monotonic()):
            self._fail_attempt(ReasonCode.LOST, life.why)
        else:
            # Who waits for a connection by now gets the next one.
            self._enter(UpstreamState.WAITING)

    async def _connect_and_serve(self) -> _Life:
        self._is_outdated = False
        self._last_target = None
        target = self._last_target = self._target()
        async with self._connect(
            target,
            known_version=self._era.first(self.known_version),
            login=self._login,
            start_timeout_s=self._era.patience_s(self.start_timeout_s, self._limits.connect_wait_s),
            callers=self._callers(),
        ) as connection:
            if self._is_outdated:
                # Before anybody had it: it declares what it should not.
                life = _Life(connection)
                life.end(is_failure=False, why=_OUTDATED)
                return life
            life = self._life = _Life(connection)
            self.last_connection = connection
            self.known_version = connection.version if connection.era_is_proved else None
            self._era.learn(connection)
            self._enter(UpstreamState.READY)
            self._attempt.connection = connection
            self._attempt.settled.set()
            async with anyio.create_task_group() as group:
                group.start_soon(self._notice_closed, life)
                group.start_soon(self._notice_idle, life)
                group.start_soon(self._notice_hung, life)
                group.start_soon(self._on_connected, connection)
                await life.over.wait()
                group.cancel_scope.cancel()
        return life

    def _target(self) -> StdioLaunch | HttpEndpoint:
        return in_workspace(self.config.target, self._root_of(), is_shared=self.config.share is True)

    async def _notice_closed(self, life: _Life) -> None:
        await life.connection.closed.wait()
        life.end(is_failure=not life.connection.has_moved, why=life.connection.last_words())

    async def _notice_hung(self, life: _Life) -> None:
        """After a call that ran out of time, ask whether anybody is there; a process that is not is started again.

        Only then: one that works on a call and answers nothing else meanwhile is busy, not hung.
        """
        while True:
            await life.probed.wait()
            life.probed = anyio.Event()
            with anyio.move_on_after(self._limits.ping_timeout_s) as patience, suppress(UpstreamError, TransportFault):
                await life.connection.ping()
            if patience.cancelled_caught:
                life.end(is_failure=True, why=f"it did not answer a ping within {self._limits.ping_timeout_s:g} s")

    async def _notice_idle(self, life: _Life) -> None:
        if self._stays:
            return
        while True:
            idle_s = time.monotonic() - self._asked_s
            if self._in_use:
                self._asked_s = time.monotonic()
            elif idle_s >= self._limits.idle_reap_s:
                self.drop(life.connection, is_failure=False, why=_IDLE)
                return
            await anyio.sleep(max(self._limits.idle_reap_s - idle_s, self._limits.idle_reap_s / 100))

    # What it keeps

    def _enter(self, state: UpstreamState) -> None:
        if state is not self.state:
            self.state, self.since_s = state, time.monotonic()
        if state is UpstreamState.READY:
            self.reason_code, self.detail = "", ""
            self._refusal = None
            self._retry.let_in()
        self._on_change()

    def _note_failure(self, error: Exception) -> None:
        """A try to connect failed, or the connection broke in a way of its own."""
        cause = start_failure_in(error)
        if cause is None:
            self._telemetry.unexpected("-", f"upstream {self.config.name}", error)
            cause = StartFailure(ReasonCode.CONNECTION_BROKE, f"the connection broke: {type(error).__name__}")
        if cause.reason_code is ReasonCode.AUTH_REQUIRED:
            stored = self._login.stored() if self._login is not None else None
            self._refusal = Refusal(cause.message, stored, cause.wanted_scopes)
            self._retry.hold(time.monotonic(), self._refusal)
        else:
            self._refusal = None
            self._lacks_workspace = cause.reason_code is ReasonCode.NO_WORKSPACE
            if not self._lacks_workspace:
                self._retry.failed(time.monotonic())
        if (cause.reason_code, cause.message) != (self.reason_code, self.detail):
            # The same failure again, try after try, is no news.
            self._telemetry.warning(
                "upstream failed", upstream=self.config.name, reason=cause.reason_code, problem=cause.message
            )
        self._fail_attempt(cause.reason_code, cause.message)

    def _is_outdated_refusal(self, refusal: Refusal | None) -> bool:
        """Whether somebody has logged in since."""
        return refusal is not None and self._login is not None and self._login.stored() != refusal.stored

    def _failed_because(self, reason_code: ReasonCode, why: str) -> None:
        self.reason_code, self.detail = reason_code, why
        self.last_failure = UpstreamFailure(reason_code, why, time.time())

    def _fail_attempt(self, reason_code: ReasonCode, why: str) -> None:
        self._failed_because(reason_code, why)
        is_down = self._lacks_workspace or self._retry.is_open(time.monotonic())
        self._enter(UpstreamState.FAILED if is_down else UpstreamState.WAITING)
        self._failed()
        # Whoever waits learns why; who comes later waits for the next try.
        self._attempt.failure = self._down()
        self._attempt.settled.set()
        self._attempt = _Attempt()

    def _down(self) -> ToolError:
        wait_s = self._retry.wait_s(time.monotonic())
        again = f"; next try in {wait_s:.0f} s" if self._retry.is_open(time.monotonic()) else ""
        problem = self.detail or "not connected"
        refusal = self._retry.refusal or self._refusal
        if refusal is not None:
            # It may be another connection of the same upstream that was refused; this one would be, too.
            message = f"upstream {self.config.name} wants a login: {refusal.why}; the call did not run"
            facts = {"upstream": self.config.name, "reason": ReasonCode.AUTH_REQUIRED}
            if refusal.wanted_scopes is not None:
                return LoginRequired(message, self.config.login_step, facts=facts, scopes=refusal.wanted_scopes)
            return ToolError(ErrorCode.AUTH, message, self.config.login_step, facts=facts)
        return ToolError(
            ErrorCode.UPSTREAM_DOWN,
            f"upstream {self.config.name} is down: {problem}{again}; the call did not run",
            "The operator can see more in the server's status; call again later.",
            facts={"upstream": self.config.name, "reason": self.reason_code or ReasonCode.STARTING},
        )


_IDLE = "idle"
_OUTDATED = "a client that can do other things came"
