"""One live connection to an upstream: era negotiation, lists, calls as wire dictionaries.

When to connect, retry and give up is the supervisor's business; what clients see of a tool is not known here.
Uses the SDK's dispatcher, but not its `ClientSession`: results pass unmodelled (REL-1 to REL-4).
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import anyio
import anyio.abc
from mcp.shared.dispatcher import CallOptions, DispatchContext, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import encode_header_value, find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from goat_mcp.core.errors import UpstreamError
from goat_mcp.subprocesses.process_guard import ProcessGuard
from goat_mcp.upstreams.config import HttpEndpoint, StdioLaunch
from goat_mcp.upstreams.envelope import CLIENT_CAPABILITIES, CLIENT_INFO, STATELESS_VERSION, stamp_request
from goat_mcp.upstreams.faults import Fault, FaultKind, LinkFault, StartFailure
from goat_mcp.upstreams.stdio_link import StdioLink, stdio_link

DISCOVER_TIMEOUT_S = 10.0
MAX_PAGES = 100
MAX_TOOLS = 10_000
_SILENT_ENDS = ("SSE stream", "Connection closed")
_FAILED_TO_PARSE = "Failed to parse"


@dataclass(frozen=True)
class ListedTools:
    """One drained `tools/list`. `truncated` names the cap that ended it early; empty if none did."""

    entries: tuple[Any, ...]
    truncated: str = ""


@dataclass
class Connection:
    """Ready for calls from any task until `closed` is set."""

    version: str
    era_is_proved: bool
    announces_changes: bool
    closed: anyio.Event
    tools_changed: anyio.Event
    _dispatcher: JSONRPCDispatcher
    _link: Any
    _is_http: bool
    _ids: itertools.count[int]
    _param_headers: dict[str, dict[tuple[str, ...], str]] = field(default_factory=dict[str, dict[tuple[str, ...], str]])

    @property
    def stateless(self) -> bool:
        return self.version == STATELESS_VERSION

    def last_words(self) -> str:
        """How the connection ended, for people."""
        return self._link.last_words()

    def junk(self) -> tuple[int, int]:
        """Lines that were no messages, and frames that were too large."""
        return self._link.junk()

    def stderr_text(self) -> str:
        return self._link.stderr_text()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        input_schema: Mapping[str, Any],
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """The raw result. Raises `UpstreamError` for an upstream's own error, `LinkFault` for one of the link."""
        params = {"name": name, "arguments": arguments, "_meta": meta}
        headers: dict[str, str] = {}
        if self._is_http and self.stateless:
            headers = {"mcp-name": encode_header_value(name), **self._mirrored(name, arguments, input_schema)}
        return await self._request("tools/call", params, headers=headers, on_progress=on_progress)

    async def list_tools(self) -> ListedTools:
        """Every page of `tools/list`, within bounds (AGG-4). Raises like `call_tool`."""
        entries: list[Any] = []
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._request("tools/list", {} if cursor is None else {"cursor": cursor})
            tools = page.get("tools")
            if not isinstance(tools, list):
                raise LinkFault(Fault(FaultKind.MALFORMED, "its answer to tools/list has no list of tools"))
            entries.extend(cast("list[Any]", tools))
            if len(entries) > MAX_TOOLS:
                return ListedTools(tuple(entries[:MAX_TOOLS]), f"more than {MAX_TOOLS} tools")
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                return ListedTools(tuple(entries))
            if cursor in seen:
                return ListedTools(tuple(entries), "a cursor came twice")
            seen.add(cursor)
        return ListedTools(tuple(entries), f"more than {MAX_PAGES} pages")

    async def listen(self) -> None:
        """Hold a change stream open until it ends (CHG-2). Raises like `call_tool`."""
        await self._request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})

    def _mirrored(self, name: str, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, str]:
        """`Mcp-Param-*` headers, from the schema clients saw (REL-7)."""
        if (header_map := self._param_headers.get(name)) is None:
            header_map = {} if find_invalid_x_mcp_header(schema) else x_mcp_header_map(schema)
            self._param_headers[name] = header_map
        return mcp_param_headers(header_map, arguments)

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        on_progress: ProgressFnT | None = None,
        options: CallOptions | None = None,
    ) -> dict[str, Any]:
        request_id = next(self._ids)
        opts: CallOptions = {"request_id": request_id, **(options or {})}
        if on_progress is not None:
            opts["on_progress"] = on_progress
        if self._is_http and method != "initialize":
            opts["headers"] = {"mcp-protocol-version": self.version, **(headers or {})}
            if self.stateless:
                opts["headers"]["mcp-method"] = method
        try:
            return await self._dispatcher.send_raw_request(
                method, stamp_request(params, stateless=self.stateless), opts
            )
        except MCPError as error:
            self._raise_failure(error, request_id)
        finally:
            if isinstance(self._link, StdioLink):
                self._link.forget(request_id)

    def _raise_failure(self, error: MCPError, request_id: int) -> NoReturn:
        fault = self._link.marks.read(error.error.data)
        if fault is None and error.code == CONNECTION_CLOSED and error.message.startswith(_SILENT_ENDS):
            if isinstance(self._link, StdioLink) and not self._link.was_written(request_id):
                fault = Fault(FaultKind.UNREACHABLE, self.last_words())
            elif self._is_http or self.closed.is_set() or self._link.exit_status is not None:
                fault = Fault(FaultKind.LOST, self.last_words() if not self._is_http else error.message)
        if fault is None and self._is_http and error.message.startswith(_FAILED_TO_PARSE):
            fault = Fault(FaultKind.MALFORMED, error.message[:300])
        if fault is not None:
            raise LinkFault(fault) from None
        raise UpstreamError(error.code, error.message, error.error.data) from None


@asynccontextmanager
async def connect(
    target: StdioLaunch | HttpEndpoint,
    *,
    known_version: str | None,
    guard: ProcessGuard | None,
    start_timeout_s: float,
) -> AsyncGenerator[Connection]:
    """Connect, find the era, and keep the connection. Raises `StartFailure`.

    Enter and leave in one task. `known_version`: what an earlier connection proved, tried first.
    """
    closed = anyio.Event()
    async with AsyncExitStack() as stack:
        if isinstance(target, StdioLaunch):
            link, read, write = await stack.enter_async_context(stdio_link(target, guard=guard))
        else:
            # Only an HTTP upstream pays for loading the HTTP client.
            from goat_mcp.upstreams.http_link import http_link

            link, read, write = await stack.enter_async_context(http_link(target))
        dispatcher = JSONRPCDispatcher(read, write)
        connection = Connection(
            version=STATELESS_VERSION,
            era_is_proved=True,
            announces_changes=False,
            closed=closed,
            tools_changed=anyio.Event(),
            _dispatcher=dispatcher,
            _link=link,
            _is_http=isinstance(target, HttpEndpoint),
            _ids=itertools.count(1),
        )
        group = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(group.cancel_scope.cancel)
        await group.start(_pump, connection, dispatcher)
        try:
            with anyio.fail_after(start_timeout_s):
                await _negotiate(connection, dispatcher, known_version)
        except TimeoutError:
            raise StartFailure("start_timeout", f"it did not answer within {start_timeout_s:g} s") from None
        yield connection


async def _pump(
    connection: Connection, dispatcher: JSONRPCDispatcher, *, task_status: anyio.abc.TaskStatus[None]
) -> None:
    def notified(method: str, params: Mapping[str, Any] | None) -> bool:
        if method == "notifications/tools/list_changed":
            connection.tools_changed.set()
        # All are consumed here: a flood costs no task each.
        return True

    try:
        await dispatcher.run(_answer, _ignore, notified, task_status=task_status)
    finally:
        connection.closed.set()


async def _answer(
    ctx: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Requests of an upstream: we declared no capability, so all but ping get an error at once (ERA-3)."""
    if method == "ping":
        return {}
    raise MCPError(code=METHOD_NOT_FOUND, message=f"goat-mcp declared no capability for {method[:100]}")


async def _ignore(ctx: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None) -> None:
    """Never reached: every notification is consumed as it arrives."""


async def _negotiate(connection: Connection, dispatcher: JSONRPCDispatcher, known_version: str | None) -> None:
    """Discover first; only a listed 2026-07-28 proves the stateless era (ERA-2)."""
    try:
        if known_version in HANDSHAKE_PROTOCOL_VERSIONS:
            try:
                await _initialize(connection, dispatcher)
                return
            except UpstreamError as refused:
                if refused.code != UNSUPPORTED_PROTOCOL_VERSION:
                    raise
            # It was upgraded since: the handshake is gone.
        if not await _discover(connection):
            await _initialize(connection, dispatcher)
    except UpstreamError as refused:
        if refused.code == UNSUPPORTED_PROTOCOL_VERSION and await _discover_again(connection):
            return
        raise StartFailure(
            "handshake_failed", f"it refused the handshake: {refused.code} {refused.message[:300]}"
        ) from None
    except LinkFault as failure:
        raise _start_failure(failure.fault) from None


async def _discover(connection: Connection) -> bool:
    connection.version = STATELESS_VERSION
    options: CallOptions = {"timeout": DISCOVER_TIMEOUT_S, "cancel_on_abandon": False}
    try:
        answer = await connection._request("server/discover", {}, options=options)  # pyright: ignore[reportPrivateUsage]  # same module
    except UpstreamError:
        return False
    except LinkFault as failure:
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
    return True


async def _discover_again(connection: Connection) -> bool:
    """A server that was slow to start may have learnt the era from the probe we gave up on."""
    try:
        return await _discover(connection)
    except LinkFault as failure:
        raise _start_failure(failure.fault) from None


async def _initialize(connection: Connection, dispatcher: JSONRPCDispatcher) -> None:
    connection.version = LATEST_HANDSHAKE_VERSION
    params = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": CLIENT_CAPABILITIES,
        "clientInfo": CLIENT_INFO,
    }
    answer = await connection._request("initialize", params, options={"cancel_on_abandon": False})  # pyright: ignore[reportPrivateUsage]  # same module
    version = answer.get("protocolVersion")
    if version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise StartFailure("handshake_failed", f"it speaks protocol revision {str(version)[:40]!r}, which we do not")
    connection.version = version
    connection.announces_changes = False
    await dispatcher.notify(
        "notifications/initialized", None, {"headers": {"mcp-protocol-version": connection.version}}
    )


def _announces(answer: Mapping[str, Any]) -> bool:
    match answer:
        case {"capabilities": {"tools": {"listChanged": True}}}:
            return True
        case _:
            return False


def _start_failure(fault: Fault) -> StartFailure:
    reason = {
        FaultKind.AUTH_REQUIRED: "auth_required",
        FaultKind.UNREACHABLE: "unreachable",
        FaultKind.LOST: "start_failed",
    }.get(fault.kind, "handshake_failed")
    return StartFailure(reason, fault.detail)
