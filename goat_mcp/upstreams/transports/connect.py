"""Connect to an upstream: open its link and find out which era it speaks (ERA-2)."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, cast

import anyio
import anyio.abc
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from goat_mcp.core.calling_client import ClientRefused
from goat_mcp.core.errors import UpstreamError
from goat_mcp.core.gateway_chain import instance_in
from goat_mcp.core.tracing import is_traced
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.upstreams.config.entry import Confine, HttpEndpoint, StdioLaunch
from goat_mcp.upstreams.envelope import CLIENT_INFO, STATELESS_VERSION
from goat_mcp.upstreams.faults import Fault, FaultKind, HandshakeRefused, NotShared, StartFailure, TransportFault
from goat_mcp.upstreams.oauth.logins import LazyLogin
from goat_mcp.upstreams.status import ReasonCode, SharingStatus
from goat_mcp.upstreams.transports.callers import Callers
from goat_mcp.upstreams.transports.child_pipes import Outbox, StdioTransport
from goat_mcp.upstreams.transports.connection import Connection
from goat_mcp.upstreams.transports.dispatcher import UpstreamDispatcher
from goat_mcp.upstreams.transports.frame_inbox import Inbox
from goat_mcp.upstreams.transports.stdio_transport import stdio_transport

DISCOVER_TIMEOUT_S = 10.0
_NO_HANDSHAKE = ("HTTP 400", "HTTP 404", "HTTP 405")
"""How a server may answer a handshake that it does not know."""

OpenStdio = Callable[[], AbstractAsyncContextManager[tuple[StdioTransport, Inbox, Outbox]]]
OpenShared = Callable[[StdioLaunch, float], AbstractAsyncContextManager[tuple[StdioTransport, Inbox, Outbox]]]
"""Opens the way to a shared process, which may take so many seconds to start. Raises `NotShared`."""


@asynccontextmanager
async def connect(
    target: StdioLaunch | HttpEndpoint,
    *,
    known_version: str | None,
    guard: ProcessGuard | None,
    start_timeout_s: float,
    callers: Callers,
    confine: Confine | None = None,
    login: LazyLogin | None = None,
    instance: str = "",
    share: OpenShared | None = None,
) -> AsyncGenerator[Connection]:
    """Connect, find the era, and keep the connection. Raises `StartFailure`.

    Enter and leave in one task. `known_version`: what an earlier connection proved, tried first.
    `instance`: our own id among gateways. `share`: how to use a process that other sessions use, too.
    """
    closed = anyio.Event()
    async with AsyncExitStack() as stack:
        if isinstance(target, StdioLaunch):
            own = partial(stdio_transport, target, guard=guard, confine=confine)
            link, read, write = await _open(stack, own, partial(share, target, start_timeout_s) if share else None)
        else:
            # Only an HTTP upstream pays for loading the HTTP client.
            from goat_mcp.upstreams.transports.http_transport import http_transport

            link, read, write = await stack.enter_async_context(http_transport(target, login and login.here()))
        link.direct.on_log = callers.notified
        dispatcher = UpstreamDispatcher(read, write)
        connection = Connection(
            version=STATELESS_VERSION,
            era_is_proved=True,
            announces_changes=False,
            closed=closed,
            tools_changed=anyio.Event(),
            callers=callers,
            _dispatcher=dispatcher,
            _link=link,
            _is_http=isinstance(target, HttpEndpoint),
            _ids=itertools.count(1),
            instance=instance,
            _outbox=write if isinstance(write, Outbox) and not is_traced() else None,
        )
        group = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(group.cancel_scope.cancel)
        await group.start(_pump, connection, dispatcher)
        group.start_soon(callers.keep_sending)
        try:
            with anyio.fail_after(start_timeout_s):
                await _negotiate(connection, dispatcher, known_version)
        except StartFailure as failure:
            if isinstance(target, StdioLaunch) and failure.reason_code is ReasonCode.UNREACHABLE:
                # It ended before our first words were in its pipe.
                raise StartFailure(ReasonCode.START_FAILED, failure.message) from None
            raise
        except TimeoutError:
            why = f"it did not answer within {start_timeout_s:g} s"
            end = link.stderr_end() if isinstance(link, StdioTransport) else ""
            raise StartFailure(ReasonCode.START_TIMEOUT, why + end) from None
        if isinstance(link, StdioTransport):
            link.has_answered = True
        yield connection


async def _open(
    stack: AsyncExitStack, own: OpenStdio, shared: OpenStdio | None
) -> tuple[StdioTransport, Inbox, Outbox]:
    """A process: one that is shared, if that can be."""
    if shared is None:
        return await stack.enter_async_context(own())
    try:
        return await stack.enter_async_context(shared())
    except NotShared as why:
        opened = await stack.enter_async_context(own())
        opened[0].sharing = SharingStatus(is_shared=False, reason=str(why))
        return opened


async def _pump(
    connection: Connection, dispatcher: UpstreamDispatcher, *, task_status: anyio.abc.TaskStatus[None]
) -> None:
    def notified(method: str, params: Mapping[str, Any] | None) -> bool:
        if method == "notifications/tools/list_changed":
            connection.tools_changed.set()
        else:
            connection.callers.notified(method, params)
            connection.notices.take(method, params)
        # All are consumed here: a flood costs no task each.
        return True

    async def answer(
        ctx: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        try:
            return await connection.callers.answer(method, params or {})
        except ClientRefused as refused:
            raise MCPError(code=refused.code, message=refused.message, data=refused.data) from None

    try:
        await dispatcher.run(answer, _ignore, notified, task_status=task_status)
    finally:
        connection.end()


async def _ignore(ctx: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None) -> None:
    """Never reached: every notification is consumed as it arrives."""


async def _negotiate(connection: Connection, dispatcher: UpstreamDispatcher, known_version: str | None) -> None:
    """Discover first; only a listed 2026-07-28 proves the stateless era (ERA-2)."""
    try:
        if known_version in HANDSHAKE_PROTOCOL_VERSIONS:
            try:
                await _initialize(connection, dispatcher)
                return
            except UpstreamError:
                pass  # it was upgraded since, or never knew the handshake
            except TransportFault as failure:
                if failure.fault.detail not in _NO_HANDSHAKE:
                    raise
        if not await _discover(connection):
            await _initialize(connection, dispatcher)
    except UpstreamError as refused:
        if refused.code == UNSUPPORTED_PROTOCOL_VERSION and await _discover_again(connection):
            return
        raise HandshakeRefused(
            ReasonCode.HANDSHAKE_FAILED, f"it refused the handshake: {refused.code} {refused.message[:300]}"
        ) from None
    except TransportFault as failure:
        raise _start_failure(failure.fault) from None


async def _discover(connection: Connection, *, may_repeat: bool = True) -> bool:
    connection.version = STATELESS_VERSION
    options: CallOptions = {"timeout": DISCOVER_TIMEOUT_S, "cancel_on_abandon": False}
    try:
        answer = await connection.request("server/discover", {}, options=options)
    except UpstreamError as refused:
        # One that names our revision as it refuses it has lost its way, not its era.
        return may_repeat and _names_our_revision(refused) and await _discover(connection, may_repeat=False)
    except TransportFault as failure:
        if failure.fault.kind in (FaultKind.MALFORMED, FaultKind.HTTP_STATUS) and failure.fault.detail not in (
            "HTTP 408",
            "HTTP 429",
        ):
            # Some old servers answer a method they do not know with a 500: no proof either way.
            connection.era_is_proved = failure.fault.kind is not FaultKind.HTTP_STATUS
            return False
        raise
    versions = answer.get("supportedVersions")
    if not isinstance(versions, list) or STATELESS_VERSION not in versions:
        return False
    connection.announces_changes = _announces(answer)
    connection.capabilities = _capabilities(answer)
    _meet(connection, answer)
    return True


def _names_our_revision(refused: UpstreamError) -> bool:
    match refused.data:
        case {"supported": [*versions]}:
            return refused.code == UNSUPPORTED_PROTOCOL_VERSION and STATELESS_VERSION in versions
        case _:
            return False


async def _discover_again(connection: Connection) -> bool:
    """A server that was slow to start may have learnt the era from the probe we gave up on."""
    try:
        return await _discover(connection)
    except TransportFault as failure:
        raise _start_failure(failure.fault) from None


async def _initialize(connection: Connection, dispatcher: UpstreamDispatcher) -> None:
    connection.version = LATEST_HANDSHAKE_VERSION
    params = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": dict(connection.callers.declared),
        "clientInfo": CLIENT_INFO,
    }
    answer = await connection.request("initialize", params, options={"cancel_on_abandon": False})
    version = answer.get("protocolVersion")
    if version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise StartFailure(
            ReasonCode.HANDSHAKE_FAILED, f"it speaks protocol revision {str(version)[:40]!r}, which we do not"
        )
    connection.version = version
    connection.announces_changes = False
    connection.capabilities = _capabilities(answer)
    _meet(connection, answer)
    await dispatcher.notify(
        "notifications/initialized", None, {"headers": {"mcp-protocol-version": connection.version}}
    )


def _meet(connection: Connection, answer: Mapping[str, Any]) -> None:
    """Learn its instructions, and whether it is a gateway, too. Raises `StartFailure` where it is ourselves."""
    instructions = answer.get("instructions")
    connection.instructions = instructions if isinstance(instructions, str) else ""
    connection.peer_instance = instance_in(answer.get("_meta"))
    if connection.peer_instance and connection.peer_instance == connection.instance:
        raise StartFailure(ReasonCode.GATEWAY_CYCLE, "it is this very goat-mcp; remove the entry")


def _announces(answer: Mapping[str, Any]) -> bool:
    match answer:
        case {"capabilities": {"tools": {"listChanged": True}}}:
            return True
        case _:
            return False


def _capabilities(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    declared = answer.get("capabilities")
    return cast("dict[str, Any]", declared) if isinstance(declared, dict) else {}


def _start_failure(fault: Fault) -> StartFailure:
    reason = {
        FaultKind.AUTH_REQUIRED: ReasonCode.AUTH_REQUIRED,
        FaultKind.UNREACHABLE: ReasonCode.UNREACHABLE,
        FaultKind.LOST: ReasonCode.START_FAILED,
    }.get(fault.kind, ReasonCode.HANDSHAKE_FAILED)
    return StartFailure(reason, fault.detail, fault.wanted_scopes)
