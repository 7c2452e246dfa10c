"""What goes back for a POST on the fast path: one JSON body, or events if something comes before the answer."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.message import SessionMessage
from starlette.types import Send

from goat_mcp.server.http.stream_events import RETRY_MS, SessionEvents
from goat_mcp.server.stdio.frame_writer import message_frame, result_frame

PING_AFTER_S = 15.0
"""A response that is silent for so long becomes a stream: proxies close connections on which nothing moves."""
SESSION_ID = MCP_SESSION_ID_HEADER.encode()
_EVENTS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_PING = b": ping\r\n\r\n"
_JSON = (b"content-type", b"application/json")


class FastResponse:
    """What goes back for one POST. Uvicorn drops what is sent to a client that is gone."""

    def __init__(self, send: Send, session_id: bytes | None, events: SessionEvents | None = None) -> None:
        """`events`: if its client can ask for the rest of a stream that it has lost."""
        self._send = send
        self._events = events
        self._stream = "" if events is None else events.new_stream()
        self._headers = [] if session_id is None else [(SESSION_ID, session_id)]
        self._is_stream = False
        self._turn = asyncio.Lock()
        self._pings: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(PING_AFTER_S, self._begin_to_ping)

    async def send(self, item: SessionMessage, /) -> None:
        """A message that comes before the answer."""
        await self._write(message_frame(item.message))

    async def answer(self, frame: bytes, status: int = 200) -> None:
        self.close()
        if self._is_stream:
            await self._write(frame, is_last=True)
        else:
            await respond(self._send, status, frame, self._headers)

    async def end(self, instead: types.ErrorData) -> None:
        """There is no answer. It can be said only if nothing has been sent yet."""
        self.close()
        if self._is_stream:
            await self._write(b"", is_last=True)
        else:
            await respond(self._send, 500, error_frame(None, instead), self._headers)

    def close(self) -> None:
        """Nothing more comes but the answer."""
        self._timer.cancel()
        if self._pings is not None:
            self._pings.cancel()

    async def _write(self, frame: bytes, *, is_last: bool = False) -> None:
        """An event; without a frame, a sign of life."""
        async with self._turn:
            data = b"" if self._is_stream else await self._begin()
            event_id = self._id(frame, is_last=is_last) if frame or is_last else b""
            if frame:
                data += b"event: message\r\n" + event_id + b"data: " + frame + b"\r\n\r\n"
            elif not is_last:
                data += _PING
            await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})

    async def _begin(self) -> bytes:
        """Make it a stream. Returns its first event: an id to come back with."""
        self._is_stream = True
        await self._send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *self._headers]})
        if self._events is None:
            return b""
        return b"retry: %d\r\n%sdata: \r\n\r\n" % (RETRY_MS, self._id(b""))

    def _id(self, frame: bytes, *, is_last: bool = False) -> bytes:
        if self._events is None:
            return b""
        return b"id: %s\r\n" % self._events.keep_frame(self._stream, frame, is_last=is_last).encode()

    def _begin_to_ping(self) -> None:
        self._pings = self._loop.create_task(self._ping())

    async def _ping(self) -> None:
        while True:
            await self._write(b"")
            await asyncio.sleep(PING_AFTER_S)


def answer_frame(request_id: types.RequestId, answer: dict[str, Any] | types.ErrorData) -> bytes:
    is_error = isinstance(answer, types.ErrorData)
    return error_frame(request_id, answer) if is_error else result_frame(request_id, answer)


def error_frame(request_id: types.RequestId | None, error: types.ErrorData) -> bytes:
    return message_frame(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


async def respond(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})
