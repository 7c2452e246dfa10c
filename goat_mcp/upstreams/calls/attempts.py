"""The attempts of one request: a connection, a second one if the first failed in a way that allows it, another attempt
after a login (AUT-3), or with answers to what the upstream asks (ERA-5).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio

from goat_mcp.core.calling_client import CAPABILITY_MISSING, URL_REQUIRED, CallingClient, RootsOf
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError, cut_middle
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.faults import Fault, FaultKind, LoginRequired, TransportFault

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.transports.connection import Connection


_UNSUPPORTED_VERSION = -32022
_ENDING_S = 0.5
"""How long an ending connection may take to be known as ended."""

T = TypeVar("T")


class ConnectionProvider(Protocol):
    """The supervisor as requests see it."""

    def check(self) -> None:
        """Raises `ToolError(UPSTREAM_DOWN)` at once while the upstream is known to be down."""
        ...

    async def ready(self, max_wait_s: float) -> Connection:
        """A connection, started if need be. Raises `ToolError(UPSTREAM_DOWN)`."""
        ...

    def want(self) -> None:
        """Start it, if need be. Nobody waits for it."""
        ...

    def begin_use(self) -> None:
        """A request has its connection or waits for one, until `end_use`: it is not idle."""
        ...

    def end_use(self) -> None: ...

    def drop(self, connection: Connection, *, is_failure: bool, why: str) -> None:
        """The connection is of no more use; get another."""
        ...

    def forget_version(self) -> None:
        """The protocol revision on record is wrong."""
        ...

    def worked(self) -> None:
        """A request was answered."""
        ...

    def probe(self, connection: Connection) -> None:
        """A request ran out of time: is anybody there?"""
        ...

    def refused(self, fault: Fault) -> None:
        """A request was not let in, and no other would be: a login is wanted."""
        ...

    def request_failed(self, why: str) -> None:
        """A transport failure that leaves the connection usable."""
        ...


async def with_retry(
    provider: ConnectionProvider,
    run: Callable[[Connection], Awaitable[T]],
    wait_left_s: Callable[[], float],
    *,
    is_read: bool = False,
) -> T:
    """Run a request, and once more if it provably never ran (LIF-6); a read also if its connection was lost.

    Tells the supervisor what it learns. Raises what `run` raises, and `ToolError(UPSTREAM_DOWN)`.
    """
    provider.begin_use()
    try:
        may_repeat = True
        while True:
            connection = await provider.ready(wait_left_s())
            try:
                answer = await run(connection)
            except UpstreamError as refused:
                if refused.code != _UNSUPPORTED_VERSION or not may_repeat:
                    provider.worked()
                    raise
                provider.forget_version()
                provider.drop(connection, is_failure=False, why="it no longer speaks the revision on record")
            except TransportFault as failure:
                never_ran = _never_ran(provider, connection, failure.fault)
                may_run_again = never_ran or (is_read and failure.fault.kind is FaultKind.LOST)
                if not may_run_again or not may_repeat:
                    raise
                if not never_ran:
                    with anyio.move_on_after(min(_ENDING_S, wait_left_s())):
                        await connection.closed.wait()
            else:
                provider.worked()
                return answer
            may_repeat = False
    finally:
        provider.end_use()


def _never_ran(provider: ConnectionProvider, connection: Connection, fault: Fault) -> bool:
    """Tell the supervisor, and say whether the request provably never ran."""
    if fault.kind is FaultKind.SESSION_LOST:
        provider.drop(connection, is_failure=False, why=fault.detail)
        return True
    if fault.kind is FaultKind.UNREACHABLE:
        provider.drop(connection, is_failure=True, why=fault.detail)
        return True
    if fault.kind is FaultKind.AUTH_REQUIRED and not fault.wanted_scopes and "403" not in fault.detail:
        # A right that one request lacks says nothing of the others.
        provider.refused(fault)
    if fault.kind is FaultKind.LOST or (fault.kind is FaultKind.HTTP_STATUS and "429" not in fault.detail):
        provider.request_failed(fault.detail)
    return False


_DETAIL_CHARS = 300


def error_message(config: UpstreamConfig, fault: Fault, *, is_call: bool) -> ToolError:
    """The error for a fault of this upstream. A call may have taken effect; a read or the like leaves nothing."""
    name, detail = config.name, cut_middle(fault.detail, _DETAIL_CHARS)
    facts = {"upstream": name, "reason": str(fault.kind)}
    not_run = "; the call did not run" if is_call else ""
    if fault.kind is FaultKind.AUTH_REQUIRED:
        message = f"upstream {name} refused our credentials ({detail}){not_run}"
        if fault.wanted_scopes is not None:
            return LoginRequired(message, config.login_step, facts=facts, scopes=fault.wanted_scopes)
        return ToolError(ErrorCode.AUTH, message, config.login_step, facts=facts)
    if is_call and fault.kind in (FaultKind.UNREACHABLE, FaultKind.SESSION_LOST):
        message = f"upstream {name} cannot be reached ({detail}){not_run}"
        return ToolError(ErrorCode.UPSTREAM_DOWN, message, "Call again later.", facts=facts)
    if fault.kind is FaultKind.MALFORMED:
        did, other_way = (
            ("ran the call", "check the outcome another way")
            if is_call
            else ("answered", "use another way to the same data")
        )
        return ToolError(
            ErrorCode.UPSTREAM, f"upstream {name} {did}, but {detail}", f"Ask it for less, or {other_way}.", facts=facts
        )
    if fault.detail == "HTTP 429":
        return ToolError(
            ErrorCode.RATE, f"upstream {name} limits our rate (HTTP 429)", "Call again later.", facts=facts
        )
    if not is_call:
        message = f"upstream {name} cannot be reached: {detail}"
        return ToolError(ErrorCode.UPSTREAM, message, "Call again later.", facts=facts)
    return ToolError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"upstream {name} was lost during the call ({detail}); the call may have taken effect",
        "Check its outcome before calling again.",
        facts={**facts, "outcome": "unknown"},
    )


MAX_ROUNDS = 10
MAX_LOGINS = 2
"""Logins for one request: one to get in, and one more if the request needs a right that the login lacks."""
ElicitLogin = Callable[[ToolContext, LoginRequired], Awaitable[None]]
"""Returns once somebody has logged in; raises what it was given if this client is not asked, or `ToolError`."""


async def in_rounds(
    upstream: str,
    send: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]],
    client: CallingClient | None,
    *,
    allow: Collection[str],
    roots: RootsOf,
) -> dict[str, Any]:
    """The result once nothing more is asked. `allow` and `roots` are as in `Callers`.

    `send` sends the request with these members beside its own and returns the raw result; it raises `UpstreamError`.
    Raises what `send` raises; -32021 for a client of the stateless era that cannot answer, `ToolError` for others.
    """
    more: Mapping[str, Any] = {"inputResponses": client.given} if client is not None and client.given else {}
    answers = None
    for number in range(1 + MAX_ROUNDS):
        refusal = None
        outcome: dict[str, Any] = {}
        try:
            outcome = await send(more)
        except UpstreamError as refused:
            if refused.code not in (URL_REQUIRED, CAPABILITY_MISSING):
                raise
            refusal = refused
        if refusal is None and outcome.get("resultType") != "input_required":
            return outcome
        if number == MAX_ROUNDS:
            break
        if answers is None:
            # Loaded by the first upstream that asks.
            from goat_mcp.upstreams.transports.server_requests import RoundAnswers

            answers = RoundAnswers(upstream, allow, roots, client)
        if refusal is not None:
            await answers.to_error(refusal)
            more = {}
        else:
            more = await answers.to_result(outcome)
    raise ToolError(
        ErrorCode.UPSTREAM,
        f"upstream {upstream} asked {MAX_ROUNDS} times without coming to an end",
        "Use another tool.",
    )


async def with_login(offer: ElicitLogin, ctx: ToolContext, send: Callable[[ToolContext], Awaitable[T]]) -> T:
    """What `send` returns. It gets the context to wait with. Raises what it and `offer` raise."""
    offered: set[str] = set()
    while True:
        try:
            return await send(ctx)
        except LoginRequired as wanted:
            if wanted.scopes in offered or len(offered) == MAX_LOGINS:
                # A new login did not help; neither would another one.
                raise
            offered.add(wanted.scopes)
            await offer(ctx, wanted)
            if ctx.wants_progress:
                # Its client heard all along that somebody logs in: that time is not the request's.
                ctx = ctx.changed(started_at_s=time.monotonic(), client_waits_since_s=None)
