"""Plain `tools/call` requests over HTTP on a short way: from the posted message to the adapter, from it to the answer.

Design 0019. The SDK's way costs a task group, three streams, a stream of events for each answer, and its models. The
first call of a session, or of a client without sessions, goes the SDK's way; later ones with the same headers that look
like it take the fast path (`plain_calls.py`). This stands behind the token, the limits and the strict reading of the
body. The answer is plain JSON if nothing goes to the client before it, and the last event of a stream otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import mcp_types as types
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    encode_header_value,
    find_invalid_x_mcp_header,
    x_mcp_header_map,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic_core import to_json
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from goat_mcp.server.cancellations import CANCELLED
from goat_mcp.server.client_channel import WATCHED_AFTER_S, Context, gone
from goat_mcp.server.http.fast_response import SESSION_ID, FastResponse, answer_frame, respond
from goat_mcp.server.http.guard import principal_of
from goat_mcp.server.http.session_calls import SESSION, CallsOfSession, Headers, SessionCall
from goat_mcp.server.http.stream_events import FIRST_VERSION
from goat_mcp.server.plain_calls import (
    CALL,
    FastCall,
    KnownClient,
    PlainCalls,
    envelope_of,
    has_plain_params,
    is_plain_call,
)

MESSAGE = "goat_mcp.message"
"""The key of a request's ASGI scope that holds the value of its body."""
_LESSON = "goat_mcp.lesson"
_MAX_KNOWN = 256
_MAX_SCHEMAS = 4096
_VERSION, _NAME = b"mcp-protocol-version", b"mcp-name"
_READ = frozenset({b"accept", b"content-type"})
"""The headers that the SDK reads, beside those of MCP."""
_HANDSHAKE = frozenset(version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS)


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
        session_id = headers.pop(SESSION_ID)
        if is_plain_call(message) and session.knows(message, headers):
            await receive()  # the body, which has been read
            await self._serve_in_session(session, message, session_id, Request(scope, receive), send)
            return
        if message.get("method") == CANCELLED:
            self.calls.cancellations.note(session_id.decode("latin-1"), message.get("params"))
        if session.takes(message):
            await respond(send, HTTPStatus.ACCEPTED, b"", [(SESSION_ID, session_id)])
            return
        if message.get("method") == CALL:
            session.newest = scope[_LESSON] = headers
        await self.app(scope, receive, send)

    async def _serve_in_session(
        self, session: CallsOfSession, message: Mapping[str, Any], session_id: bytes, request: Request, send: Send
    ) -> None:
        assert session.known is not None
        is_resumable = session.known.connection.protocol_version >= FIRST_VERSION
        response = FastResponse(send, session_id, session.events if is_resumable else None)
        call = SessionCall(message, session.known, response, session.questions)
        call.request = request
        session.running[coerce_request_id(call.request_id)] = call

        async def answer_now(answer: dict[str, Any]) -> None:
            session.ended(call)
            await self._answer_now(call, response, answer)

        call.answer_now = answer_now
        try:
            answer = await self._run(call, response)
        finally:
            session.ended(call)
        if call.is_left:
            return
        if call.is_cancelled:
            answer = types.ErrorData(code=REQUEST_CANCELLED, message="Request cancelled")
        if answer is None:
            ended = "Session terminated before the request completed"
            await response.end(types.ErrorData(code=types.INTERNAL_ERROR, message=ended))
        else:
            await response.answer(answer_frame(call.request_id, answer))

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
            response = FastResponse(send, None)
            call = FastCall(message["id"], message["params"], known, response)
            call.request = Request(scope, receive)
            call.answer_now = partial(self._answer_now, call, response)
            await self._serve_alone(call, response)

    async def _serve_alone(self, call: FastCall, response: FastResponse) -> None:
        loop = asyncio.get_running_loop()
        watch: list[asyncio.Task[None]] = []

        async def cancel_when_gone() -> None:
            await gone(call.request)
            call.cancel()

        timer = loop.call_later(WATCHED_AFTER_S, lambda: watch.append(loop.create_task(cancel_when_gone())))
        try:
            answer = await self._run(call, response)
        finally:
            timer.cancel()
            for task in watch:
                task.cancel()
        if answer is None or call.is_left:
            return  # the client is gone, or has its answer
        status = ERROR_CODE_HTTP_STATUS.get(answer.code, 200) if isinstance(answer, types.ErrorData) else 200
        await response.answer(answer_frame(call.request_id, answer), status)

    async def _answer_now(self, call: FastCall, response: FastResponse, answer: dict[str, Any]) -> None:
        wire = self.calls.wire(answer, call.protocol_version)
        await response.answer(answer_frame(call.request_id, wire))

    async def _run(self, call: FastCall, response: FastResponse) -> dict[str, Any] | types.ErrorData | None:
        """The answer; None if the call was ended before it."""
        try:
            with call.scope:
                return await self.calls.answer(*call.context())
        finally:
            call.close()
            response.close()
        return None

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
