"""A posted message is read whole and in time, and checked (R-SCHEMA-1), before the SDK sees it."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goat_mcp.server.http.fast_path import MESSAGE
from goat_mcp.server.http.guard import Refusal, principal_of
from goat_mcp.server.stdio.frame_validation import Fault, read_strictly

BODY_DEADLINE_S = 30.0
_TOO_LARGE = Refusal(413, "the request body is too large")
_TOO_SLOW = Refusal(408, "the request body did not come in time")


class _BrokenOff(Exception):
    """The client is gone, or what it sends is no HTTP: nobody is there to answer."""


class _TooLarge(Exception):
    pass


@dataclass
class StrictBody:
    """ASGI middleware, behind the token: nobody else's body is read or parsed."""

    app: ASGIApp
    max_bytes: int
    needs_token: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or principal_of(scope, needs_token=self.needs_token) is None:
            await self.app(scope, receive, send)
            return
        try:
            with anyio.fail_after(BODY_DEADLINE_S):
                body = await self._read(scope, receive)
        except _BrokenOff:
            return
        except _TooLarge:
            await _TOO_LARGE.answer(send)
            return
        except TimeoutError:
            await _TOO_SLOW.answer(send)
            return
        if scope["method"] == "POST":
            if isinstance(read := read_strictly(body), Fault):
                await Response(read.answer(), 400, media_type="application/json")(scope, receive, send)
                return
            scope[MESSAGE] = read
        await self.app(scope, replayed(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        declared = next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)
        if declared > self.max_bytes:
            raise _TooLarge
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _BrokenOff
            body += message.get("body", b"")
            if len(body) > self.max_bytes:
                raise _TooLarge
            if not message.get("more_body", False):
                return bytes(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """`receive` for a request whose body has been read."""
    is_read = False

    async def replay() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
