"""A posted message is read whole and checked (R-SCHEMA-1) before the SDK sees it; one with a fault is answered here."""

from __future__ import annotations

from dataclasses import dataclass

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goat_mcp.server.strict_frames import find_fault


@dataclass
class StrictBody:
    """ASGI middleware, behind the token: nobody else's body is read or parsed."""

    app: ASGIApp
    max_bytes: int
    needs_token: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not self._may_speak(scope):
            await self.app(scope, receive, send)
            return
        messages, body = await self._read(receive)
        if body is not None and (fault := find_fault(body)) is not None:
            await Response(fault.answer(), 400, media_type="application/json")(scope, receive, send)
            return
        await self.app(scope, _replayed(messages, receive), send)

    def _may_speak(self, scope: Scope) -> bool:
        return not self.needs_token or isinstance(scope.get("user"), AuthenticatedUser)

    async def _read(self, receive: Receive) -> tuple[list[Message], bytes | None]:
        """What arrived, and the body; None for one that broke off or is too long, which the SDK answers."""
        messages: list[Message] = []
        size = 0
        while size <= self.max_bytes:
            message = await receive()
            messages.append(message)
            if message["type"] != "http.request":
                return messages, None
            size += len(message.get("body", b""))
            if not message.get("more_body", False):
                body = b"".join(message.get("body", b"") for message in messages)
                return messages, body if size <= self.max_bytes else None
        return messages, None


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    arrived = iter(messages)

    async def replay() -> Message:
        return message if (message := next(arrived, None)) is not None else await receive()

    return replay
