"""Plain `tools/call` requests over stdio on a short way: from the frame to the adapter, from it to the pipe.

Design 0019. The SDK's way costs three streams, a span, a chain of middleware and three models for each call. What is
spared is only what an earlier call of the same client has shown to make no difference, so this deliberately knows
nothing of handshakes, protocol versions or who may call: the first call of a connection goes the SDK's way, later ones
that look like it take the fast path. All other messages are the SDK's, and so is any call with a member, or a key in
its `_meta`, that this does not know; with an answer to a question of ours; or while somebody traces calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, cast

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.dispatcher import CallOptions, as_request_id, coerce_request_id
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry import trace
from pydantic import ValidationError

from goat_mcp.core.cancel_scopes import cancel_scope
from goat_mcp.core.gateway_chain import HOPS_KEY
from goat_mcp.server.client_channel import CalledTool, Context
from goat_mcp.server.result_compatibility import is_known_everywhere, is_plain_text
from goat_mcp.server.stdio.frame_writer import FrameWriter

Handler = Callable[[Context, CalledTool], Awaitable[Any]]
Seal = Callable[[Context, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]
"""The SDK's middleware that seals the state of a question."""

CALL = "tools/call"
_RESERVED = "io.modelcontextprotocol/"
_MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS = frozenset({"name", "arguments", "_meta"})
_MIDDLEWARES_KEYS = frozenset({"traceparent", "tracestate", "baggage", HOPS_KEY})
"""In the `_meta` of a request: what middleware on the SDK's way would read."""
_CLOSED = types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed")
_logger = logging.getLogger(__name__)


class KnownClient:
    """What a call on the SDK's way has shown of its client: the connection, and how its requests introduce it."""

    def __init__(self, ctx: Context) -> None:
        # The SDK has no public way from a session to its connection.
        self.connection: Connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage]
        self.lifespan: Any = ctx.lifespan_context
        self.envelope = envelope_of((ctx.params or {}).get("_meta") or {})


class FastCall:
    """One call, and its ways to the client: a `DispatchContext` for what runs in it."""

    message_metadata = None

    def __init__(
        self, request_id: types.RequestId, params: Mapping[str, Any], known: KnownClient, writer: FrameWriter
    ) -> None:
        self.request_id = request_id
        self.scope = cancel_scope()
        self.is_cancelled = False
        self.is_closed = False
        self.connection_ended = False
        self._cancel_requested: anyio.Event | None = None
        self._params = params
        self._known = known
        self._writer = writer

    def context(self) -> tuple[Context, CalledTool]:
        """What the adapter is given."""
        params, connection = self._params, self._known.connection
        ctx: Context = ServerRequestContext(
            session=ServerSession(self, connection, request_meta=params.get("_meta")),
            lifespan_context=self._known.lifespan,
            protocol_version=connection.protocol_version,
            method=CALL,
            params=params,
            request_id=self.request_id,
            meta=params.get("_meta"),
        )
        return ctx, _PlainParams(params["name"], params.get("arguments"))

    def cancel(self) -> None:
        """The client wants no answer any more."""
        self.is_cancelled = True
        if self._cancel_requested is not None:
            self._cancel_requested.set()
        self.scope.cancel()

    def close(self) -> None:
        """It has its answer, or never will: nothing more goes to its client."""
        self.is_closed = True

    def end_connection(self) -> None:
        """The client is gone."""
        self.connection_ended = True
        if not self.is_closed:
            self.scope.cancel()

    @property
    def cancel_requested(self) -> anyio.Event:
        # Made when somebody looks at it, which we do not.
        if self._cancel_requested is None:
            self._cancel_requested = anyio.Event()
        return self._cancel_requested

    @property
    def transport(self) -> TransportContext:
        return TransportContext(kind="jsonrpc", can_send_request=self.can_send_request)

    @property
    def can_send_request(self) -> bool:
        return not self.is_closed and self._known.connection.protocol_version not in MODERN_PROTOCOL_VERSIONS

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if not self.can_send_request:
            raise NoBackChannelError(method)
        return await self._known.connection.outbound.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        if self.is_closed:
            return
        about = {} if params is None else {"params": dict(params)}
        try:
            await self._writer.send(SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method=method, **about)))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            _logger.debug("%s was dropped: the client is gone", method)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        meta: Mapping[str, Any] = self._params.get("_meta") or {}
        if (token := meta.get("progressToken")) is not None:
            report: dict[str, Any] = {"progressToken": token, "progress": progress, "total": total, "message": message}
            await self.notify("notifications/progress", {key: one for key, one in report.items() if one is not None})


class _PlainParams(NamedTuple):
    """The params of a call. Making the SDK's model of them takes longer than all else here."""

    name: str
    arguments: dict[str, Any] | None
    input_responses: None = None
    request_state: None = None


def envelope_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What of a `_meta` the protocol reads: the revision, the client and what it can do, the log level it wants."""
    return {key: value for key, value in meta.items() if key.startswith(_RESERVED)} if meta else {}


class FastPath:
    """The fast path into one server, over one connection."""

    def __init__(self, server: Server[Any], call_tool: Handler, seal: Seal) -> None:
        self._server = server
        self._call_tool = call_tool
        self._seal = seal
        self._is_traced = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
        self._server_info = server.server_info_stamp
        self._known: KnownClient | None = None
        self._newest: types.RequestId | None = None
        """The last message that went the SDK's way, where it was a call."""
        self._running: dict[types.RequestId, FastCall] = {}
        self._tasks: dict[FastCall, asyncio.Task[None]] = {}
        server.add_request_handler(CALL, types.CallToolRequestParams, self._learn)

    async def _learn(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        """A call has come through on the SDK's way."""
        if ctx.request_id == self._newest and not self._is_traced:
            # Messages stay in order: whatever came before this one has begun, too.
            self._known = KnownClient(ctx)
        return await self._call_tool(ctx, params)

    @property
    def is_open(self) -> bool:
        """Whether any message may take it at the moment."""
        return self._known is not None

    def takes(self, message: object) -> bool:
        """Whether this message, which is sound JSON, may take the fast path."""
        if self._known is None or not isinstance(message, dict):
            return False
        frame = cast("dict[str, Any]", message)
        return (
            frame.get("method") == CALL
            and frame.get("jsonrpc") == "2.0"
            and frame.keys() == _MEMBERS
            and as_request_id(frame["id"]) is not None
            and _is_plain(frame["params"], self._known.envelope)
        )

    def start(self, message: Mapping[str, Any], writer: FrameWriter) -> None:
        """Begin a call that `takes` has let pass; its answer goes to the writer."""
        assert self._known is not None
        call = FastCall(message["id"], message["params"], self._known, writer)
        self._running[coerce_request_id(call.request_id)] = call
        # Beginning a task in a group costs as much as a stage of the pipeline. `end` does what a group is for.
        self._tasks[call] = asyncio.get_running_loop().create_task(self._serve(call, writer))

    async def end(self) -> None:
        """The connection ends: cancel what runs, and wait until it has ended."""
        for call, task in self._tasks.items():
            if call.is_closed:
                task.cancel()  # it has its answer, and waits for a client that does not read
            call.end_connection()
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def passes_on(self, message: types.JSONRPCMessage) -> bool:
        """Note a message for the SDK. False for one that was about a call of ours, and is done with."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            return True
        if isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            request_id = as_request_id((message.params or {}).get("requestId"))
            call = self._running.get(coerce_request_id(request_id)) if request_id is not None else None
            if call is not None:
                call.cancel()
            return call is None
        # It may change what the next call meets (a log level, a new greeting), which therefore comes after it.
        self._known = None
        self._newest = message.id if isinstance(message, types.JSONRPCRequest) and message.method == CALL else None
        return True

    async def _serve(self, call: FastCall, writer: FrameWriter) -> None:
        answer: dict[str, Any] | types.ErrorData | None = None
        try:
            try:
                with call.scope:
                    ctx, params = call.context()
                    try:
                        answer = self._wire(await self._call_tool(ctx, params), ctx.protocol_version)
                        if answer.get("resultType") == "input_required":
                            answer = await self._seal(ctx, _returning(answer))
                    except Exception as problem:
                        answer = handler_exception_to_error_data(problem) or _unexpected(problem, ctx.protocol_version)
            finally:
                call.close()
                if self._running.get(key := coerce_request_id(call.request_id)) is call:
                    del self._running[key]
            if call.is_cancelled:
                return  # whoever cancels a call gets no answer to it
            if not call.connection_ended:
                await self._send(call, answer, writer)
            elif answer is None:
                writer.post(_error(call.request_id, _CLOSED))
            else:
                with anyio.move_on_after(0):
                    # Written, but nobody waits for the client to read it.
                    await self._send(call, answer, writer)
        except Exception:
            _logger.exception("a call failed on its way out")
        finally:
            # Here, not in a callback of the task: that would cost another turn of the event loop.
            del self._tasks[call]

    async def _send(self, call: FastCall, answer: dict[str, Any] | types.ErrorData | None, writer: FrameWriter) -> None:
        if answer is None:
            return
        try:
            if isinstance(answer, dict):
                await writer.send_result(call.request_id, answer)
            else:
                await writer.send(SessionMessage(_error(call.request_id, answer)))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            _logger.debug("the answer to %r was dropped: the client is gone", call.request_id)

    def _wire(self, result: Any, version: str) -> dict[str, Any]:
        """The result as this revision has it, and signed in the era that has that."""
        is_modern = version in MODERN_PROTOCOL_VERSIONS
        answer = cast("dict[str, Any]", result) if isinstance(result, dict) else {}
        if is_plain_text(answer) or is_known_everywhere(answer):
            wire = dict(answer)
            if not is_modern:
                del wire["resultType"]
        else:
            if not isinstance(result, dict):
                result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
            try:
                wire = methods.serialize_server_result(CALL, version, cast("dict[str, Any]", result))
            except ValidationError:
                _logger.exception("an invalid result of a call")
                raise MCPError(types.INTERNAL_ERROR, "Handler returned an invalid result") from None
        if not is_modern:
            return wire
        meta: Mapping[str, Any] = wire.get("_meta") or {}
        if meta.get(types.SERVER_INFO_META_KEY) is None:
            meta = {**meta, types.SERVER_INFO_META_KEY: self._server_info}
        return {**wire, "_meta": meta}


def _is_plain(params: object, envelope: Mapping[str, Any]) -> bool:
    if not isinstance(params, dict):
        return False
    named = cast("dict[str, Any]", params)
    meta = named.get("_meta", {})
    return (
        named.keys() <= _PARAMS
        and isinstance(named.get("name"), str)
        and isinstance(named.get("arguments", {}), dict)
        and isinstance(meta, dict)
        and envelope_of(known := cast("dict[str, Any]", meta)) == envelope
        and ("progressToken" not in known or as_request_id(known["progressToken"]) is not None)
        and _MIDDLEWARES_KEYS.isdisjoint(known)
    )


def _returning(result: dict[str, Any]) -> Callable[[Any], Awaitable[Any]]:
    async def call_next(ctx: Any) -> dict[str, Any]:
        return result

    return call_next


def _error(request_id: types.RequestId, error: types.ErrorData) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


def _unexpected(problem: Exception, version: str) -> types.ErrorData:
    """A defect, in the words of the SDK."""
    _logger.error("a call failed", exc_info=problem)
    if version in MODERN_PROTOCOL_VERSIONS:
        return types.ErrorData(code=types.INTERNAL_ERROR, message="Internal server error")
    return types.ErrorData(code=0, message=str(problem))
