"""A request's way to a connection, and to a second one where the first failed in a way that allows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

import anyio

from goat_mcp.core.errors import UpstreamError
from goat_mcp.upstreams.faults import Fault, FaultKind, LinkFault
from goat_mcp.upstreams.transports.live_connection import LiveConnection

_UNSUPPORTED_VERSION = -32022
_ENDING_S = 0.5
"""How long an ending connection may take to be known as ended."""

T = TypeVar("T")


class ConnectionProvider(Protocol):
    """The supervisor as requests see it."""

    def check(self) -> None:
        """Raises `ToolError(UPSTREAM_DOWN)` at once while the upstream is known to be down."""
        ...

    async def ready(self, max_wait_s: float) -> LiveConnection:
        """A connection, started if need be. Raises `ToolError(UPSTREAM_DOWN)`."""
        ...

    def want(self) -> None:
        """Start it, if need be. Nobody waits for it."""
        ...

    def in_use(self) -> AbstractContextManager[None]:
        """A request has its connection or waits for one: it is not idle."""
        ...

    def drop(self, connection: LiveConnection, *, is_failure: bool, why: str) -> None:
        """The connection is of no more use; get another."""
        ...

    def forget_version(self) -> None:
        """The protocol revision on record is wrong."""
        ...

    def worked(self) -> None:
        """A request was answered."""
        ...

    def doubt(self, connection: LiveConnection) -> None:
        """A request ran out of time: is anybody there?"""
        ...

    def refused(self, fault: Fault) -> None:
        """A request was not let in, and no other would be: a login is wanted."""
        ...

    def stumbled(self, why: str) -> None:
        """A transport failure that leaves the connection usable."""
        ...


async def with_retry(
    lifeline: ConnectionProvider,
    run: Callable[[LiveConnection], Awaitable[T]],
    wait_left_s: Callable[[], float],
    *,
    is_read: bool = False,
) -> T:
    """Run a request, and once more if it provably never ran (LIF-6); a read also if its connection was lost.

    Tells the supervisor what it learns. Raises what `run` raises, and `ToolError(UPSTREAM_DOWN)`.
    """
    with lifeline.in_use():
        return await _run(lifeline, run, wait_left_s, is_read=is_read)


async def _run(
    lifeline: ConnectionProvider,
    run: Callable[[LiveConnection], Awaitable[T]],
    wait_left_s: Callable[[], float],
    *,
    is_read: bool,
) -> T:
    may_repeat = True
    while True:
        connection = await lifeline.ready(wait_left_s())
        try:
            answer = await run(connection)
        except UpstreamError as refused:
            if refused.code != _UNSUPPORTED_VERSION or not may_repeat:
                lifeline.worked()
                raise
            lifeline.forget_version()
            lifeline.drop(connection, is_failure=False, why="it no longer speaks the revision on record")
        except LinkFault as failure:
            never_ran = _never_ran(lifeline, connection, failure.fault)
            may_run_again = never_ran or (is_read and failure.fault.kind is FaultKind.LOST)
            if not may_run_again or not may_repeat:
                raise
            if not never_ran:
                with anyio.move_on_after(min(_ENDING_S, wait_left_s())):
                    await connection.closed.wait()
        else:
            lifeline.worked()
            return answer
        may_repeat = False


def _never_ran(lifeline: ConnectionProvider, connection: LiveConnection, fault: Fault) -> bool:
    """Tell the supervisor, and say whether the request provably never ran."""
    if fault.kind is FaultKind.SESSION_LOST:
        lifeline.drop(connection, is_failure=False, why=fault.detail)
        return True
    if fault.kind is FaultKind.UNREACHABLE:
        lifeline.drop(connection, is_failure=True, why=fault.detail)
        return True
    if fault.kind is FaultKind.AUTH_REQUIRED and not fault.wanted_scopes and "403" not in fault.detail:
        # A right that one request lacks says nothing of the others.
        lifeline.refused(fault)
    if fault.kind is FaultKind.LOST or (fault.kind is FaultKind.HTTP_STATUS and "429" not in fault.detail):
        lifeline.stumbled(fault.detail)
    return False
