"""Whose the sessions of the handshake era are, and which of them ends to make room for another (R-HTTP-4b).

The SDK keeps the sessions; here they are counted, and ended as a client ends them: with a DELETE. That includes those
that nobody uses any more, for not all calls come to the SDK (`fast_path.py`).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goat_mcp.server.client_channel import STREAMS
from goat_mcp.server.http.guard import Refusal, principal_of
from goat_mcp.server.http.principal_limits import FairShares, Holding, NoRoom
from goat_mcp.server.http.session_calls import SESSION, CallsOfSession
from goat_mcp.server.http.stream_events import FIRST_VERSION, StreamEvents

_NO_ROOM = Refusal(503, "too many sessions of this client, all of them in use; end some", ((b"retry-after", b"1"),))


@dataclass(eq=False)
class Session(Holding):
    user: Any = None
    """Who opened it, as the SDK wants to see them again."""
    session_id: str = ""
    """Empty while it is being opened."""
    calls: CallsOfSession = field(default_factory=CallsOfSession)

    @property
    def can_be_closed(self) -> bool:
        return self.session_id != ""


@dataclass
class PrincipalSessions:
    """ASGI middleware, behind the token."""

    app: ASGIApp
    shares: FairShares
    idle_timeout_s: float
    needs_token: bool
    events: StreamEvents
    _sessions: dict[str, Session] = field(default_factory=dict[str, Session])
    _closing: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = principal_of(scope, needs_token=self.needs_token) if scope["type"] == "http" else None
        if principal is None or not has_sessions(headers := Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        session_id = headers.get(MCP_SESSION_ID_HEADER)
        if session_id is None:
            await self._open(principal, scope, receive, send)
        elif (session := self._sessions.get(session_id)) is not None and session.principal == principal:
            await self._use(session, scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _open(self, principal: str, scope: Scope, receive: Receive, send: Send) -> None:
        new = Session(principal, user=scope.get("user"), calls=CallsOfSession(self.events.new_session()))
        try:
            victim = self.shares.add(new)
        except NoRoom:
            await _NO_ROOM.answer(send)
            return

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                new.session_id = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER, "")
                if new.session_id:
                    self._sessions[new.session_id] = new
                    self._look_after(new, {**scope, "state": {}}, self.idle_timeout_s)
            await send(message)

        new.begin()
        try:
            if isinstance(victim, Session):
                await self._close(victim, scope)
            with self.events.used_by(new.calls.events):
                await self.app(scope, receive, watch)
        finally:
            new.end()
            if not new.session_id:
                self.shares.remove(new)

    async def _use(self, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                if status == 404 or (scope["method"] == "DELETE" and status < 400):
                    self._forget(session)
            await send(message)

        scope[SESSION], events, headers = session.calls, session.calls.events, Headers(scope=scope)
        if headers.get(MCP_PROTOCOL_VERSION_HEADER, "") >= FIRST_VERSION:
            scope[STREAMS] = events
        comes_back = scope["method"] == "GET" and "last-event-id" in headers
        session.begin()
        try:
            with self.events.used_by(events), events.resumed() if events is not None and comes_back else nullcontext():
                await self.app(scope, receive, watch)
        finally:
            session.end()

    async def _close(self, session: Session, scope: Scope) -> None:
        self._forget(session)
        headers = [(MCP_SESSION_ID_HEADER.encode(), session.session_id.encode())]
        with anyio.CancelScope(shield=True):
            await self.app({**scope, "method": "DELETE", "headers": headers, "user": session.user}, _nothing, _unheard)

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session.session_id, None)
        self.shares.remove(session)
        if session.calls.events is not None:
            session.calls.events.forget_all()

    def _look_after(self, session: Session, scope: Scope, after_s: float) -> None:
        """Close the session if it is idle by then, or look again. `scope` is that of any request."""
        asyncio.get_running_loop().call_later(after_s, self._close_idle, session, scope)

    def _close_idle(self, session: Session, scope: Scope) -> None:
        if self._sessions.get(session.session_id) is not session:
            return
        left_s = self.idle_timeout_s - (0.0 if session.requests else time.monotonic() - session.used_at_s)
        if left_s > 0:
            self._look_after(session, scope, left_s)
            return
        closing = asyncio.get_running_loop().create_task(self._close(session, scope))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


def has_sessions(headers: Headers) -> bool:
    """Whether a request is of the handshake era."""
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _unheard(message: Message) -> None:
    """Nobody waits for this answer."""
