"""Calls to an HTTP upstream past the SDK's dispatcher: the task that waits for an answer posts it and reads.

Design 0019. An answer that comes another way, on the stream of the session or in the response of another request, finds
its call by the id. Whatever else an upstream says meanwhile is for the dispatcher.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
import httpx2
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from goat_mcp.core.cancel_scopes import cancel_scope
from goat_mcp.core.tracing import is_traced
from goat_mcp.upstreams.faults import Fault, FaultKind, TransportFault
from goat_mcp.upstreams.transports.child_pipes import LOG_MESSAGE, Answer
from goat_mcp.upstreams.transports.frames import encode

SESSION_HEADER = "mcp-session-id"
_EVENTS, _JSON = "text/event-stream", "application/json"
_POST = {"accept": f"{_JSON}, {_EVENTS}", "content-type": _JSON}
_GET = {"accept": _EVENTS, "cache-control": "no-store"}
_RESUME_AFTER_MS = 1000
_MAX_FAILED_RESUMPTIONS = 2
_END_WAIT_S = 1.0
"""So long a response may take to end after its answer; its connection is closed then."""
_Events = AsyncIterator[httpx2.ServerSentEvent]


class Guarded(Protocol):
    """The way to the upstream, whose failures come as responses."""

    @property
    def session_id(self) -> str | None: ...


@dataclass(eq=False)
class _Call:
    """One that waits for its answer."""

    scope: anyio.CancelScope
    answer: Answer | None = None


@dataclass
class _Stream:
    """How far the events of one call have come."""

    last_id: str = ""
    resume_after_ms: int = _RESUME_AFTER_MS


class DirectPosts:
    """The calls of one connection, sent by `client`. `others` leads to the dispatcher; `group` lasts as long as it."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        url: str,
        way: Guarded,
        others: MemoryObjectSendStream[SessionMessage | Exception],
        group: TaskGroup,
        *,
        max_event_bytes: int,
    ) -> None:
        self._client = client
        self._url = httpx2.URL(url)
        self._way = way
        self._others = others
        self._group = group
        self._max_event_bytes = max_event_bytes
        self._waiting: dict[int, _Call] = {}
        self._is_over = False
        self.on_log: Callable[[str, Mapping[str, Any] | None], None] | None = None
        """Takes log messages, so that none is overtaken by the answer; must not block."""
        self.is_used = not is_traced()

    async def ask(self, request_id: int, params: Mapping[str, Any], headers: Mapping[str, str]) -> Answer | None:
        """The answer; None if the connection ended without one. Cancelled, it breaks off the request.

        Raises `TransportFault`.
        """
        if self._is_over:
            return None
        call = self._waiting[request_id] = _Call(cancel_scope())
        try:
            with call.scope:
                answer = await self._post(request_id, params, headers)
                if answer is not None:
                    return answer
                if call.answer is None:
                    # It answered something else. The answer may come another way; if not, the call has a deadline.
                    await anyio.sleep_forever()
        except TransportFault:
            if call.answer is None:
                raise
        finally:
            del self._waiting[request_id]
        return call.answer

    def take(self, message: JSONRPCMessage) -> bool:
        """Hand an answer that came another way to its call. False for any other message."""
        if not self._waiting or not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return False
        answered = coerce_request_id(message.id)
        call = self._waiting.get(answered) if isinstance(answered, int) else None
        if call is None:
            return False
        call.answer = message
        call.scope.cancel()
        return True

    def end(self) -> None:
        """No more answers will come."""
        self._is_over = True
        for call in self._waiting.values():
            call.scope.cancel()

    async def _post(self, request_id: int, params: Mapping[str, Any], headers: Mapping[str, str]) -> Answer | None:
        body = encode({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})
        response = await self._send("POST", {**_POST, **headers}, body)
        stream = _Stream()
        is_ending = False
        try:
            if response.status_code != 200:
                return _refused(request_id, response.status_code, await response.aread())
            if not _has_events(response):
                return await self._only_answer(request_id, response)
            events = self._events(response)
            if (answer := await self._read(stream, events)) is not None:
                is_ending = True
                self._group.start_soon(_end, response, events)
                return answer
        except httpx2.StreamError:
            pass  # it broke: what came until then may be enough to go on
        finally:
            if not is_ending:
                await response.aclose()
        return await self._resumed(stream, headers)

    async def _send(self, method: str, headers: dict[str, str], body: bytes | None = None) -> httpx2.Response:
        if (session_id := self._way.session_id) is not None:
            headers[SESSION_HEADER] = session_id
        request = self._client.build_request(method, self._url, headers=headers, content=body)
        return await self._client.send(request, stream=True)

    async def _only_answer(self, request_id: int, response: httpx2.Response) -> Answer | None:
        try:
            message = jsonrpc_message_adapter.validate_json(await response.aread(), by_name=False)
        except (httpx2.StreamError, ValidationError) as broken:
            raise _malformed("Failed to parse JSON response", broken) from None
        if isinstance(message, JSONRPCResponse | JSONRPCError) and (
            message.id is None or coerce_request_id(message.id) == request_id
        ):
            return message
        if not self.take(message):
            await self._hear(message)
        return None

    def _events(self, response: httpx2.Response) -> _Events:
        return aiter(httpx2.EventSource(response, max_event_size=self._max_event_bytes))

    async def _read(self, stream: _Stream, events: _Events) -> Answer | None:
        """The answer that ends a stream; None if it ends without. What comes before is heard before."""
        try:
            async for event in events:
                stream.last_id = event.id or stream.last_id
                if event.retry is not None:
                    stream.resume_after_ms = event.retry
                if event.event != "message" or not event.data:
                    continue
                message = jsonrpc_message_adapter.validate_json(event.data, by_name=False)
                if isinstance(message, JSONRPCResponse | JSONRPCError):
                    return message
                await self._hear(message)
        except httpx2.SSEError as too_large:
            raise _malformed("SSE stream failed", too_large) from None
        except ValidationError as broken:
            raise _malformed("Failed to parse SSE message", broken) from None
        return None

    async def _resumed(self, stream: _Stream, headers: Mapping[str, str]) -> Answer:
        """The answer of a stream that ended before it, asked for as often as the protocol wants."""
        if not stream.last_id:
            raise TransportFault(Fault(FaultKind.LOST, "SSE stream ended without a response"))
        failures = 0
        while failures < _MAX_FAILED_RESUMPTIONS:
            await anyio.sleep(stream.resume_after_ms / 1000)
            response = await self._send("GET", {**headers, **_GET, "last-event-id": stream.last_id})
            try:
                if response.status_code == 200 and _has_events(response):
                    if (answer := await self._read(stream, self._events(response))) is not None:
                        return answer
                    failures = 0
                else:
                    failures += 1
            except (httpx2.StreamError, httpx2.TransportError):
                failures += 1
            finally:
                await response.aclose()
        raise TransportFault(Fault(FaultKind.LOST, "SSE stream ended and reconnection attempts were exhausted"))

    async def _hear(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCNotification) and message.method == LOG_MESSAGE and self.on_log is not None:
            self.on_log(message.method, message.params)
        else:
            await self._others.send(SessionMessage(message))


async def _end(response: httpx2.Response, events: _Events) -> None:
    """Read a response that has brought its answer to its end: only then is its connection used again."""
    try:
        with anyio.move_on_after(_END_WAIT_S), suppress(httpx2.StreamError, httpx2.SSEError):
            await anext(events, None)
    finally:
        await response.aclose()


def _has_events(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith(_EVENTS)


def _refused(request_id: int, status: int, body: bytes) -> JSONRPCError:
    """The error that a status other than 200 stands for. Faults have become JSON-RPC errors by now."""
    if status == 202:
        code, why = INVALID_REQUEST, "server answered a request with 202 Accepted"
    else:
        try:
            message = jsonrpc_message_adapter.validate_json(body, by_name=False)
        except ValidationError:
            message = None
        if isinstance(message, JSONRPCError):
            return message
        code, why = INTERNAL_ERROR, "Server returned an error response"
        if status == 404:
            code, why = METHOD_NOT_FOUND, "Not Found"
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=why))


def _malformed(what: str, broken: Exception) -> TransportFault:
    why = broken.errors()[0]["msg"] if isinstance(broken, ValidationError) else str(broken)
    return TransportFault(Fault(FaultKind.MALFORMED, f"{what}: {why}"[:300]))
