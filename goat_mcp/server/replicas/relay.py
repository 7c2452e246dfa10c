"""A client's request that another replica answers: what it sends comes through piece by piece, until either ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.types import Receive, Scope, Send

from goat_mcp.core.errors import ToolError
from goat_mcp.server.caller_identity import PATH_PROFILE
from goat_mcp.server.http.fast_path import MESSAGE
from goat_mcp.server.http.guard import MCP_PATH
from goat_mcp.state.replicas.registry import ReplicaRegistry
from goat_mcp.state.replicas.replica import Replica
from goat_mcp.web.hops.client import HopClient, ReplicaLost
from goat_mcp.web.hops.spans import trace_of

_TRAVELLING = frozenset({b"accept", b"content-type", b"last-event-id", b"traceparent", b"tracestate"})
"""Of a request's headers, beside those of MCP. A client's token stays here."""
_OF_THE_CONNECTION = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"date", b"server", b"upgrade", b"trailer"}
)
_STREAM = b"text/event-stream"


@dataclass
class Relay:
    """Sends what one client asks to the replica that has to answer."""

    registry: ReplicaRegistry
    hops: HopClient

    async def pass_on(self, scope: Scope, receive: Receive, send: Send, to: Replica, body: bytes, reason: str) -> None:
        """Answer with what `to` answers; `reason` is what the client is told if it is lost meanwhile.

        Raises `ReplicaUnreachable` while nothing has been sent either way.
        """
        answer = _Answer(send, scope.get(MESSAGE), reason)
        failed: ToolError | None = None
        async with anyio.create_task_group() as group:

            async def watch_client() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            async def watch_owner() -> None:
                # A stopped process keeps its connections: only its lease says that it is gone.
                await self.registry.until_gone(to)
                answer.is_lost = True
                group.cancel_scope.cancel()

            group.start_soon(watch_client)
            group.start_soon(watch_owner)
            try:
                await self._stream(scope, to, body, answer)
            except ReplicaLost:
                answer.is_lost = True
            except ToolError as unreachable:
                failed = unreachable
            group.cancel_scope.cancel()
        if failed is not None:
            raise failed
        if answer.is_lost:
            await answer.say_lost(to)

    async def _stream(self, scope: Scope, to: Replica, body: bytes, answer: _Answer) -> None:
        profile: str = scope.get(PATH_PROFILE, "")
        user = scope.get("user")
        principal = user.access_token.model_dump(exclude={"token"}) if isinstance(user, AuthenticatedUser) else None
        path = f"{MCP_PATH}/{profile}" if profile else MCP_PATH
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in _TRAVELLING or name.startswith(b"mcp-")
        } | trace_of(scope.get(MESSAGE))
        sent = self.hops.send(to, scope["method"], path, headers=headers, body=body, principal=principal)
        async with sent as response:
            kept = [(name.lower(), value) for name, value in response.headers.raw]
            kept = [(name, value) for name, value in kept if name not in _OF_THE_CONNECTION]
            if dict(kept).get(b"content-type", b"").startswith(_STREAM):
                await answer.start(response.status_code, kept, is_stream=True)
                async for piece in response.aiter_raw():
                    await answer.piece(piece)
            else:
                whole = await response.aread()  # so that the client gets an error if it breaks off
                await answer.start(response.status_code, [*kept, (b"content-length", str(len(whole)).encode())])
                await answer.piece(whole)
            await answer.end()


class _Answer:
    """What one client has got so far."""

    def __init__(self, send: Send, message: object, reason: str) -> None:
        self._send = send
        self._request: Mapping[str, Any] = message if isinstance(message, dict) else {}
        self._reason = reason
        self._has_begun = False
        self._is_stream = False
        self._has_ended = False
        self.is_lost = False

    async def start(self, status: int, headers: list[tuple[bytes, bytes]], *, is_stream: bool = False) -> None:
        self._has_begun, self._is_stream = True, is_stream
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def piece(self, piece: bytes) -> None:
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        self._has_ended = True
        await self._send({"type": "http.response.body", "body": b""})

    async def say_lost(self, replica: Replica) -> None:
        """The replica has ended: an error for a call, the end of any other stream."""
        if self._has_ended:
            return
        request_id = self._request.get("id") if "method" in self._request else None
        error = lost_error(replica.name, self._request.get("method") == "tools/call", self._reason)
        frame = types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)
        text = frame.model_dump_json(by_alias=True, exclude_unset=True)
        if not self._has_begun:
            # 404: its sessions are gone with it, and the client starts again.
            status = 404 if request_id is None else 200
            await self.start(status, [(b"content-type", b"application/json")])
            await self.piece(text.encode())
        elif self._is_stream and request_id is not None:
            await self.piece(f"\n\nevent: message\ndata: {text}\n\n".encode())
        await self.end()


def lost_error(name: str, may_have_effects: bool, reason: str) -> types.ErrorData:
    """For a request whose replica ended before its answer."""
    if may_have_effects:
        message = f"the replica {name}, which ran this call, has ended; the call may have taken effect: look first"
    else:
        message = f"the replica {name} ended before it answered; ask again"
    effects = "possible" if may_have_effects else "none"
    return types.ErrorData(code=types.CONNECTION_CLOSED, message=message, data={"reason": reason, "effects": effects})


def session_not_found() -> bytes:
    """What the protocol says of a session that is gone: the client opens another."""
    error = types.ErrorData(code=types.INVALID_REQUEST, message="Session not found")
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error.model_dump(exclude_none=True)}).encode()
