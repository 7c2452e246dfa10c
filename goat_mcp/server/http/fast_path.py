"""Plain `tools/call` requests over HTTP on a short way: from the posted message to the adapter, from it to the answer.

Design 0019. The SDK's way costs a task group, three streams, a stream of events for each answer, and its models. The
first call of a session, or of a client without sessions, goes the SDK's way; later ones with the same headers that look
like it take the fast path (`plain_calls.py`). This stands behind the token, the limits and the strict reading of the
body. The answer is plain JSON if nothing goes to the client before it, and the last event of a stream otherwise.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, REQUEST_CANCELLED
from mcp.shared.dispatcher import CallOptions, as_request_id, coerce_request_id
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    encode_header_value,
    find_invalid_x_mcp_header,
    x_mcp_header_map,
)
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from goat_mcp.server.client_channel import WATCHED_AFTER_S, Context, gone
from goat_mcp.server.http.guard import principal_of
from goat_mcp.server.plain_calls import (
    CALL,
    FastCall,
    KnownClient,
    PlainCalls,
    envelope_of,
    has_plain_params,
    is_plain_call,
)
from goat_mcp.server.stdio.frame_writer import message_frame, result_frame

MESSAGE = "goat_mcp.message"
"""The key of a request's ASGI scope that holds the value of its body."""
SESSION = "goat_mcp.session"
"""The same for the `CallsOfSession` of its session, which is its principal's."""
PING_AFTER_S = 15.0
"""A response that is silent for so long becomes a stream: proxies close connections on which nothing moves."""
_LESSON = "goat_mcp.lesson"
_MAX_KNOWN = 256
_MAX_SCHEMAS = 4096
_SESSION_ID, _VERSION, _NAME = MCP_SESSION_ID_HEADER.encode(), b"mcp-protocol-version", b"mcp-name"
_READ = frozenset({b"accept", b"content-type"})
"""The headers that the SDK reads, beside those of MCP."""
_HANDSHAKE = frozenset(version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS)
_EVENTS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_JSON = (b"content-type", b"application/json")
_logger = logging.getLogger(__name__)

Headers = dict[bytes, bytes]


class _Response:
    """What goes back for one POST. Uvicorn drops what is sent to a client that is gone."""

    def __init__(self, send: Send, session_id: bytes | None) -> None:
        self._send = send
        self._headers = [] if session_id is None else [(_SESSION_ID, session_id)]
        self._is_stream = False
        self._turn = asyncio.Lock()
        self._pings: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(PING_AFTER_S, self._begin_to_ping)

    async def send(self, item: SessionMessage, /) -> None:
        """A message that comes before the answer."""
        await self._write(_event(message_frame(item.message)))

    async def answer(self, frame: bytes, status: int = 200) -> None:
        self.close()
        if self._is_stream:
            await self._write(_event(frame), is_last=True)
        else:
            await _respond(self._send, status, frame, self._headers)

    async def end(self, instead: types.ErrorData) -> None:
        """There is no answer. It can be said only if nothing has been sent yet."""
        self.close()
        if self._is_stream:
            await self._write(b"", is_last=True)
        else:
            await _respond(self._send, 500, _error_frame(None, instead), self._headers)

    def close(self) -> None:
        """Nothing more comes but the answer."""
        self._timer.cancel()
        if self._pings is not None:
            self._pings.cancel()

    async def _write(self, data: bytes, *, is_last: bool = False) -> None:
        async with self._turn:
            if not self._is_stream:
                self._is_stream = True
                await self._send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *self._headers]})
            await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})

    def _begin_to_ping(self) -> None:
        self._pings = self._loop.create_task(self._ping())

    async def _ping(self) -> None:
        while True:
            await self._write(b": ping\r\n\r\n")
            await asyncio.sleep(PING_AFTER_S)


class _SessionCall(FastCall):
    """A call of the handshake era, which may put requests to its client on its own stream."""

    def __init__(
        self,
        message: Mapping[str, Any],
        known: KnownClient,
        response: _Response,
        questions: dict[str, asyncio.Future[dict[str, Any] | types.ErrorData]],
    ) -> None:
        super().__init__(message["id"], message["params"], known, response)
        self._response = response
        self._questions = questions

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if not self.can_send_request:
            raise NoBackChannelError(method)
        request_id = f"goat-{secrets.token_hex(8)}"
        about: dict[str, Any] = {} if params is None else {"params": dict(params)}
        question = types.JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, **about)
        answer = self._questions[request_id] = asyncio.get_running_loop().create_future()
        try:
            with anyio.fail_after((opts or {}).get("timeout")):
                await self._response.send(SessionMessage(question))
                outcome = await answer
        except TimeoutError:
            await self._withdraw(request_id, "timed out")
            raise MCPError(types.REQUEST_TIMEOUT, f"Request {method!r} timed out") from None
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._withdraw(request_id, "caller cancelled")
            raise
        finally:
            del self._questions[request_id]
        if isinstance(outcome, types.ErrorData):
            raise MCPError(outcome.code, outcome.message, outcome.data)
        return outcome

    async def _withdraw(self, request_id: str, reason: str) -> None:
        await self.notify("notifications/cancelled", {"requestId": request_id, "reason": reason})


@dataclass(eq=False)
class CallsOfSession:
    """What the fast path knows of one session of the handshake era. Only its principal gets to it."""

    known: KnownClient | None = None
    headers: Headers | None = None
    newest: Headers | None = None
    """Of the last request that went the SDK's way, if it was a call."""
    connection: Connection | None = None
    running: dict[types.RequestId, _SessionCall] = field(default_factory=dict[types.RequestId, _SessionCall])
    questions: dict[str, asyncio.Future[dict[str, Any] | types.ErrorData]] = field(
        default_factory=dict[str, "asyncio.Future[dict[str, Any] | types.ErrorData]"]
    )

    def learn(self, ctx: Context, headers: Headers) -> None:
        """A call of these headers has come through on the SDK's way."""
        # Messages stay in order: whatever came before the newest one has begun, too.
        if self.newest is headers:
            self.known, self.headers = KnownClient(ctx), headers
            if self.connection is not self.known.connection:
                self.connection = self.known.connection
                self.connection.exit_stack.callback(self._end)

    def knows(self, message: dict[str, Any], headers: Headers) -> bool:
        known = self.known
        return (
            known is not None
            and self.headers == headers
            and has_plain_params(message["params"], known.envelope)
            and coerce_request_id(message["id"]) not in self.running
        )

    def takes(self, message: Mapping[str, Any]) -> bool:
        """Whether a message that is no call was about a call of ours, and is done with."""
        match message:
            case {"method": "notifications/cancelled", "params": {"requestId": str() | int() as about}}:
                request_id = as_request_id(about)
                call = self.running.get(coerce_request_id(request_id)) if request_id is not None else None
                if call is not None:
                    call.cancel()
                return call is not None
            case {"method": _}:
                # It may change what the next call meets (a log level, a new greeting), which therefore comes after it.
                self.known = self.newest = None
                return False
            case {"id": str() as about} if (question := self.questions.get(about)) is not None:
                if (outcome := _outcome(message)) is None:
                    return False
                if not question.done():
                    question.set_result(outcome)
                return True
            case _:
                return False

    def _end(self) -> None:
        """The session has ended."""
        self.known = self.newest = None
        for call in self.running.values():
            call.end_connection()


@dataclass(eq=False)
class HttpFastPath:
    """ASGI middleware, the innermost of ours: behind what knows whose a session is."""

    app: ASGIApp
    calls: PlainCalls
    needs_token: bool
    _known: dict[tuple[Any, ...], KnownClient] = field(default_factory=dict[tuple[Any, ...], KnownClient])
    """Clients without sessions, by how their requests introduce them, whoever they are."""
    _mirroring: dict[str, tuple[Any, bool]] = field(default_factory=dict[str, tuple[Any, bool]])

    def __post_init__(self) -> None:
        self.calls.server.add_request_handler(CALL, types.CallToolRequestParams, self._learn)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        value = scope.pop(MESSAGE, None)
        if (
            not isinstance(value, dict)
            or scope["method"] != "POST"
            or principal_of(scope, needs_token=self.needs_token) is None
            or (headers := _headers(scope["headers"])) is None
            or self.calls.are_traced
        ):
            await self.app(scope, receive, send)
            return
        message = cast("dict[str, Any]", value)
        if headers.get(_VERSION, b"") not in _HANDSHAKE and _VERSION in headers:
            await self._alone(message, headers, scope, receive, send)
        elif isinstance(session := scope.get(SESSION), CallsOfSession):
            await self._in_session(session, message, headers, scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _learn(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        """A call has come through on the SDK's way."""
        scope: Mapping[str, Any] = ctx.request.scope if ctx.request is not None else {}
        lesson = scope.get(_LESSON)
        if isinstance(lesson, tuple):
            if len(self._known) >= _MAX_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[cast("tuple[Any, ...]", lesson)] = KnownClient(ctx)
        elif isinstance(session := scope.get(SESSION), CallsOfSession) and lesson is not None:
            session.learn(ctx, lesson)
        return await self.calls.call_tool(ctx, params)

    async def _in_session(
        self,
        session: CallsOfSession,
        message: dict[str, Any],
        headers: Headers,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        session_id = headers.pop(_SESSION_ID)
        if is_plain_call(message) and session.knows(message, headers):
            await receive()  # the body, which has been read
            await self._serve_in_session(session, message, session_id, Request(scope, receive), send)
            return
        if session.takes(message):
            await _respond(send, HTTPStatus.ACCEPTED, b"", [(_SESSION_ID, session_id)])
            return
        if message.get("method") == CALL:
            session.newest = scope[_LESSON] = headers
        await self.app(scope, receive, send)

    async def _serve_in_session(
        self, session: CallsOfSession, message: Mapping[str, Any], session_id: bytes, request: Request, send: Send
    ) -> None:
        assert session.known is not None
        response = _Response(send, session_id)
        call = _SessionCall(message, session.known, response, session.questions)
        call.request = request
        key = coerce_request_id(call.request_id)
        session.running[key] = call
        answer: dict[str, Any] | types.ErrorData | None = None
        try:
            with call.scope:
                answer = await self.calls.answer(*call.context())
        finally:
            call.close()
            response.close()
            del session.running[key]
        if call.is_cancelled:
            answer = types.ErrorData(code=REQUEST_CANCELLED, message="Request cancelled")
        if answer is None:
            ended = "Session terminated before the request completed"
            await response.end(types.ErrorData(code=types.INTERNAL_ERROR, message=ended))
        else:
            await response.answer(_frame(call.request_id, answer))

    async def _alone(
        self, message: dict[str, Any], headers: Headers, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """A request of the era without sessions."""
        lesson = self._lesson(message, headers)
        if lesson is None:
            await self.app(scope, receive, send)
        elif (known := self._known.get(lesson)) is None:
            scope[_LESSON] = lesson
            await self.app(scope, receive, send)
        else:
            await receive()  # the body, which has been read
            response = _Response(send, None)
            call = FastCall(message["id"], message["params"], known, response)
            call.request = Request(scope, receive)
            await self._serve_alone(call, response)

    async def _serve_alone(self, call: FastCall, response: _Response) -> None:
        loop = asyncio.get_running_loop()
        watch: list[asyncio.Task[None]] = []

        async def cancel_when_gone() -> None:
            await gone(call.request)
            call.cancel()

        timer = loop.call_later(WATCHED_AFTER_S, lambda: watch.append(loop.create_task(cancel_when_gone())))
        answer: dict[str, Any] | types.ErrorData | None = None
        try:
            with call.scope:
                answer = await self.calls.answer(*call.context())
        finally:
            call.close()
            response.close()
            timer.cancel()
            for task in watch:
                task.cancel()
        if answer is None:
            return  # the client is gone
        status = ERROR_CODE_HTTP_STATUS.get(answer.code, 200) if isinstance(answer, types.ErrorData) else 200
        await response.answer(_frame(call.request_id, answer), status)

    def _lesson(self, message: dict[str, Any], headers: Headers) -> tuple[Any, ...] | None:
        """How a call introduces its client; None for another message, and for a call that only the SDK checks whole."""
        name = headers.pop(_NAME, b"")
        if not is_plain_call(message) or not isinstance(message["params"], dict):
            return None
        params = cast("dict[str, Any]", message["params"])
        meta: Any = params.get("_meta")
        if not isinstance(meta, dict):
            return None
        envelope = envelope_of(cast("dict[str, Any]", meta))
        if not has_plain_params(params, envelope) or encode_header_value(params["name"]).encode() != name:
            return None
        if params.get("arguments") and self._mirrors_arguments(params["name"]):
            return None
        return to_json(envelope), frozenset(headers.items())

    def _mirrors_arguments(self, name: str) -> bool:
        """Whether clients of this tool repeat arguments in headers, which the SDK compares."""
        lookup = self.calls.server.get_tool_input_schema
        schema = lookup(name) if lookup is not None else None
        if schema is None:
            return True
        known = self._mirroring.get(name)
        if known is None or known[0] is not schema:
            if len(self._mirroring) >= _MAX_SCHEMAS:
                self._mirroring.clear()
            is_any = find_invalid_x_mcp_header(schema) is not None or bool(x_mcp_header_map(schema))
            known = self._mirroring[name] = (schema, is_any)
        return known[1]


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers | None:
    """Those that the SDK reads; None if only the SDK may read them: one comes twice, or repeats an argument."""
    found: Headers = {}
    for name, value in raw:
        if name in _READ or name.startswith(b"mcp-"):
            if name in found or name.startswith(b"mcp-param-"):
                return None
            found[name] = value
    return found


def _outcome(message: Mapping[str, Any]) -> dict[str, Any] | types.ErrorData | None:
    """What a client answered to a request; None for what is no answer."""
    try:
        answer = types.jsonrpc_message_adapter.validate_python(message, by_name=False)
    except ValidationError:
        return None
    if isinstance(answer, types.JSONRPCResponse):
        return answer.result
    return answer.error if isinstance(answer, types.JSONRPCError) else None


def _frame(request_id: types.RequestId, answer: dict[str, Any] | types.ErrorData) -> bytes:
    return _error_frame(request_id, answer) if isinstance(answer, types.ErrorData) else result_frame(request_id, answer)


def _error_frame(request_id: types.RequestId | None, error: types.ErrorData) -> bytes:
    return message_frame(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


def _event(frame: bytes) -> bytes:
    return b"event: message\r\ndata: " + frame + b"\r\n\r\n"


async def _respond(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})
