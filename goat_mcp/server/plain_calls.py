"""Plain `tools/call` requests past the SDK (design 0019): which ones are plain, what runs for one, and its answer.

What is spared is only what an earlier call of the same client has shown to make no difference, so this deliberately
knows nothing of handshakes, protocol versions or who may call. `stdio/fast_path.py` and `http/fast_path.py` say when a
call takes the fast path, and how its messages travel. All other messages are the SDK's, and so is any call with a
member, or a key in its `_meta`, that this does not know; with an answer to a question of ours; or while somebody traces
calls.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.dispatcher import CallOptions, as_request_id
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from goat_mcp.core.cancel_scopes import cancel_scope
from goat_mcp.core.context import Afterwards, DoAfterwards
from goat_mcp.core.gateway_chain import HOPS_KEY
from goat_mcp.core.tracing import is_traced
from goat_mcp.server.cancellations import Cancellations
from goat_mcp.server.client_channel import CalledTool, Context
from goat_mcp.server.result_compatibility import is_known_everywhere, is_plain_text

Handler = Callable[[Context, CalledTool], Awaitable[Any]]
Seal = Callable[[Context, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]
"""The SDK's middleware that seals the state of a question."""

CALL = "tools/call"
_RESERVED = "io.modelcontextprotocol/"
_MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS = frozenset({"name", "arguments", "_meta"})
_MIDDLEWARES_KEYS = frozenset({"traceparent", "tracestate", "baggage", HOPS_KEY})
"""In the `_meta` of a request: what middleware on the SDK's way would read."""
_logger = logging.getLogger(__name__)


class Writer(Protocol):
    """The way of a message to the client. Raises `ClosedResourceError` and `BrokenResourceError` if there is none."""

    async def send(self, item: SessionMessage, /) -> None: ...


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
    request: Any = None
    """The HTTP request it came by."""

    def __init__(
        self, request_id: types.RequestId, params: Mapping[str, Any], known: KnownClient, writer: Writer
    ) -> None:
        self.request_id = request_id
        self.scope = cancel_scope()
        self.is_cancelled = False
        self.is_closed = False
        self.is_left = False
        """Whether the client has an answer already, and the call goes on as a background task."""
        self.connection_ended = False
        self.answer_now: Callable[[dict[str, Any]], Awaitable[None]] | None = None
        """Sends the answer of a call that has been left; None if nothing can."""
        self._cancel_requested: anyio.Event | None = None
        self._call_id = ""
        self._afterwards: list[Afterwards] | None = None
        self._params = params
        self._known = known
        self._writer = writer

    def context(self) -> tuple[Context, CalledTool]:
        """What the adapter is given."""
        params, connection = self._params, self._known.connection
        ctx = PlainContext(
            call=self,
            session=ServerSession(self, connection, request_meta=params.get("_meta")),
            lifespan_context=self._known.lifespan,
            protocol_version=connection.protocol_version,
            method=CALL,
            params=params,
            request_id=self.request_id,
            meta=params.get("_meta"),
            request=self.request,
        )
        return ctx, _PlainParams(params["name"], params.get("arguments"))

    def will_do_afterwards(self) -> None:
        """Whoever answers calls `do_afterwards` then, in any case."""
        self._afterwards = []

    def for_call(self, call_id: str) -> DoAfterwards:
        """For the call of ours that this is, and none that it makes in turn."""
        self._call_id = call_id
        return self._later

    def _later(self, call_id: str, work: Afterwards) -> bool:
        if self._afterwards is None or call_id != self._call_id:
            return False
        self._afterwards.append(work)
        return True

    async def do_afterwards(self) -> None:
        """The client has its answer, or will have none: do what was left for then. Repeating it changes nothing."""
        work, self._afterwards = self._afterwards, None
        for one in work or ():
            await one()

    def leave(self) -> bool:
        """Whether the call goes on without its client from now on: then `answer_now` is due."""
        if self.answer_now is None or self.is_closed or self.is_cancelled or self.connection_ended:
            return False
        self.is_left = self.is_closed = True
        return True

    def cancel(self) -> None:
        """The client wants no answer any more."""
        if self.is_left:
            return
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
    def protocol_version(self) -> str:
        return self._known.connection.protocol_version

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


@dataclass(kw_only=True)
class PlainContext(ServerRequestContext[Any, Any]):
    """The context of a request that takes the fast path."""

    call: FastCall


class _PlainParams(NamedTuple):
    """The params of a call. Making the SDK's model of them takes longer than all else here."""

    name: str
    arguments: dict[str, Any] | None
    input_responses: None = None
    request_state: None = None


def envelope_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What of a `_meta` the protocol reads: the revision, the client and what it can do, the log level it wants."""
    return {key: value for key, value in meta.items() if key.startswith(_RESERVED)} if meta else {}


class PlainCalls:
    """Runs plain calls of one server."""

    def __init__(
        self, server: Server[Any], call_tool: Handler, seal: Seal, cancellations: Cancellations | None = None
    ) -> None:
        self.server = server
        self.cancellations = cancellations or Cancellations()
        self.call_tool = call_tool
        self._seal = seal
        self._server_info = server.server_info_stamp
        self.are_traced = is_traced()

    async def answer(self, ctx: Context, params: CalledTool) -> dict[str, Any] | types.ErrorData:
        """The result or the error, as this client's revision has it."""
        try:
            answer = self.wire(await self.call_tool(ctx, params), ctx.protocol_version)
            if answer.get("resultType") == "input_required":
                answer = await self._seal(ctx, _returning(answer))
        except Exception as problem:
            return handler_exception_to_error_data(problem) or _unexpected(problem, ctx.protocol_version)
        return answer

    def wire(self, result: Any, version: str) -> dict[str, Any]:
        """The result as this revision has it, and signed in the era that has that."""
        is_modern = version in MODERN_PROTOCOL_VERSIONS
        answer = cast("dict[str, Any]", result) if isinstance(result, dict) else {}
        if is_plain_text(answer) or is_known_everywhere(answer):
            wire = dict(answer)
            if not is_modern:
                del wire["resultType"]
        elif answer.get("resultType") == "task":
            wire = answer  # of an extension, which no revision describes
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


def is_plain_call(message: dict[str, Any]) -> bool:
    """Whether this is a call as far as its members say."""
    return (
        message.get("method") == CALL
        and message.get("jsonrpc") == "2.0"
        and message.keys() == _MEMBERS
        and as_request_id(message["id"]) is not None
    )


def has_plain_params(params: object, envelope: Mapping[str, Any]) -> bool:
    """Whether params name nothing but a tool and its arguments, for a client of this envelope."""
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


def _unexpected(problem: Exception, version: str) -> types.ErrorData:
    """A defect, in the words of the SDK."""
    _logger.error("a call failed", exc_info=problem)
    if version in MODERN_PROTOCOL_VERSIONS:
        return types.ErrorData(code=types.INTERNAL_ERROR, message="Internal server error")
    return types.ErrorData(code=0, message=str(problem))
