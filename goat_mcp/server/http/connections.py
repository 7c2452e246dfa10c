"""The connections of the HTTP server: how many there may be, of whom, and when they end (R-HTTP-4, R-HTTP-4b).

Connections that have not shown a token are counted apart; the others are counted for the principal of their token.
A message that another program in front of us could read differently is 400, and the connection ends (RFC 9112, 6.1).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass, field
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer  # h11 has no other door to the lines it reads
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from goat_mcp.core import posix
from goat_mcp.server.http.guard import Refusal, principal_of
from goat_mcp.server.http.principal_limits import FairShares, Holding, NoRoom
from goat_mcp.server.http.socket_user import peer_user

_CLOSE = (b"connection", b"close")
_AMBIGUOUS_LINES = re.compile(rb"\n[ \t]|(?<!\r)\n|\r(?=[^\n])|\x00")
"""A folded header, lines that end with half a line end, and what some take for the end of a text."""


class _StrictLines(ReceiveBuffer):
    """Where h11 takes its lines from: heads, sizes of chunks, and trailers."""

    def maybe_extract_next_line(self) -> bytearray | None:
        line = super().maybe_extract_next_line()
        if line is not None and _AMBIGUOUS_LINES.search(line):
            raise h11.RemoteProtocolError("incomplete line end in the size of a chunk")
        return line

    def maybe_extract_lines(self) -> list[bytearray] | None:
        if not self._data.startswith(b"\r\n"):
            end = self._data.find(b"\r\n\r\n")
            if _AMBIGUOUS_LINES.search(self._data, 0, end if end >= 0 else len(self._data)):
                raise h11.RemoteProtocolError("folded header or incomplete line end")
        return super().maybe_extract_lines()


class StrictConnection(h11.Connection):
    """The server's side of one connection."""

    is_authorized = False
    """Whether the request in progress has shown a token, or needs none."""

    is_refused = False
    """Whether the request cannot be read any further."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER)
        self._receive_buffer = _StrictLines()

    @property
    def owes_body(self) -> bool:
        """Whether the client may still be sending what nobody will read."""
        return self.is_refused or self.their_state is h11.SEND_BODY

    def next_event(self) -> Any:
        try:
            return self._next_event()
        except h11.RemoteProtocolError:
            self.is_refused = True
            raise

    def _next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.is_authorized = False
            names = {name for name, _ in event.headers}
            if event.http_version not in (b"1.0", b"1.1"):
                raise h11.RemoteProtocolError("unknown HTTP version")
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version == b"1.0"):
                raise h11.RemoteProtocolError("Transfer-Encoding beside Content-Length, or in HTTP/1.0")
        return event

    def send(self, event: Any) -> Any:
        if isinstance(event, h11.Response) and (self.owes_body or not self.is_authorized):
            kept = [(name, value) for name, value in event.headers if name != b"connection"]
            event = h11.Response(status_code=event.status_code, headers=[*kept, _CLOSE], reason=event.reason)
        return super().send(event)


TOKEN_DEADLINE_S = 5.0
LINGER_S = 1.0
"""How long the sender of a refused body may read the answer."""
STRANGERS_BODY_BYTES = 64 * 1024
_CONNECTION = "goat_mcp.connection"
_NO_ROOM = Refusal(503, "too many connections of this client; close some", ((b"retry-after", b"1"),))


def possible_connections(wanted: int) -> int:
    """At most half of the file descriptors: those without a token and all programs we start need the others."""
    most = posix.most_open_files()
    return wanted if most is None else max(1, min(wanted, most // 2))


@dataclass
class Connections:
    """Those of one server. `body_bytes` is how much of a body is read of clients with a token."""

    shares: FairShares
    header_deadline_s: float
    body_bytes: int
    _strangers: dict[GuardedProtocol, None] = field(default_factory=dict["GuardedProtocol", None])

    @property
    def max_strangers(self) -> int:
        return max(1, self.shares.capacity // 2)

    def came(self, connection: GuardedProtocol) -> None:
        """The oldest silent connection makes room for a new one."""
        if len(self._strangers) >= self.max_strangers:
            oldest = next((one for one in self._strangers if not one.is_answering), next(iter(self._strangers)))
            del self._strangers[oldest]
            oldest.abort()
        self._strangers[connection] = None

    def recognized(self, connection: GuardedProtocol, holding: KnownConnection) -> None:
        """It is a principal's from now on. Raises `NoRoom`."""
        victim = self.shares.add(holding)
        self._strangers.pop(connection, None)
        if isinstance(victim, KnownConnection):
            victim.protocol.abort()

    def gone(self, connection: GuardedProtocol) -> None:
        self._strangers.pop(connection, None)


@dataclass(eq=False)
class KnownConnection(Holding):
    protocol: GuardedProtocol = field(kw_only=True)

    @property
    def can_be_closed(self) -> bool:
        """A lost one counts until its call has ended."""
        return not self.protocol.is_lost


class GuardedProtocol(H11Protocol):
    """Uvicorn's side of one connection, with deadlines, strict framing, and an end after a refused body."""

    registry: Connections
    """Set in a subclass for each server."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn: StrictConnection = StrictConnection()
        self.app_state = {**self.app_state, _CONNECTION: self}
        self._socket: Any = None
        self._deadline: asyncio.TimerHandle | None = None
        self._holding: KnownConnection | None = None
        self._received_bytes = 0
        self.is_lingering = False
        self.is_lost = False

    @property
    def is_answering(self) -> bool:
        """Whether a request's headers are complete and its response is not."""
        cycle: Any = self.cycle  # None before the first request, whatever its annotation says
        return cycle is not None and not cycle.response_complete

    def begin(self, principal: str) -> None:
        """The request in progress is this principal's. Raises `NoRoom`."""
        if self._holding is None or self._holding.principal != principal:
            if self._holding is not None:
                self.registry.shares.remove(self._holding)
                self._holding = None
            new = KnownConnection(principal, protocol=self)
            self.registry.recognized(self, new)
            self._holding = new
        self._holding.begin()
        self.conn.is_authorized = True

    def end(self) -> None:
        """The request is answered. A lost connection counts until then: its call may still be running."""
        assert self._holding is not None
        self._holding.end()
        if self.is_lost:
            self.registry.shares.remove(self._holding)

    def abort(self) -> None:
        self._socket.abort()

    def connection_made(self, transport: Any) -> None:
        self._socket = transport
        super().connection_made(_ClosedByProtocol(transport, self))  # type: ignore[arg-type]  # all that uvicorn uses
        if not is_own_user(transport.get_extra_info("socket")):
            transport.abort()
            return
        self.registry.came(self)
        self._arm(min(TOKEN_DEADLINE_S, self.registry.header_deadline_s))

    def data_received(self, data: bytes) -> None:
        self._received_bytes += len(data)
        if self.is_lingering:
            limit = 2 * self.registry.body_bytes if self.conn.is_authorized else STRANGERS_BODY_BYTES
            if self._received_bytes > limit:
                self.abort()
            return
        if self._deadline is None and not self.is_answering:
            self._arm(self.registry.header_deadline_s)
        super().data_received(data)
        if self.is_answering:
            self._disarm()

    def on_response_complete(self) -> None:
        if not self.is_lingering:
            self._received_bytes = 0
        super().on_response_complete()

    def _get_upgrade(self) -> None:
        """No other protocol is spoken here: a request that offers one is answered in HTTP/1.1 (RFC 9110, 7.8)."""

    def send_400_response(self, msg: str) -> None:
        """The request is broken: its call has nobody to answer any more."""
        if self.is_answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._disarm()
        self.registry.gone(self)
        if self._holding is not None and not self._holding.requests:
            self.registry.shares.remove(self._holding)
        super().connection_lost(exc)

    def close(self) -> None:
        """Uvicorn is done. If the request is not, its sender gets the end of our answer, not a reset."""
        if self.is_lingering or self._socket.is_closing() or not self.conn.owes_body:
            self._socket.close()
            return
        self.is_lingering = True
        self._disarm()
        self._arm(LINGER_S)
        with contextlib.suppress(OSError):  # the other side has gone
            self._socket.write_eof()
        self._socket.resume_reading()

    def _arm(self, after_s: float) -> None:
        self._deadline = asyncio.get_running_loop().call_later(after_s, self.abort)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _ClosedByProtocol:
    """The transport that uvicorn sees: how it is closed is decided by the protocol."""

    def __init__(self, transport: asyncio.Transport, protocol: GuardedProtocol) -> None:
        self._transport = transport
        self._protocol = protocol

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        self._protocol.close()

    def is_closing(self) -> bool:
        return self._protocol.is_lingering or self._transport.is_closing()


@dataclass
class PrincipalConnections:
    """ASGI middleware, behind the token: says whose a connection is."""

    app: ASGIApp
    needs_token: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = principal_of(scope, needs_token=self.needs_token) if scope["type"] == "http" else None
        if principal is None:
            await self.app(scope, receive, send)
            return
        # Its token has said who it is. Nothing behind this sees it: no tool, no upstream, no log (R-SECRET-1).
        scope["headers"] = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
        connection: GuardedProtocol = scope["state"][_CONNECTION]
        try:
            connection.begin(principal)
        except NoRoom:
            await _NO_ROOM.answer(send)
            return
        try:
            await self.app(scope, receive, send)
        finally:
            connection.end()


def is_own_user(connection: Any) -> bool:
    """Whether a Unix socket's other end is this user or root (R-HTTP-1); other sockets have no user."""
    try:
        user = peer_user(connection)
    except OSError:  # it has gone, or the system does not answer: nobody who is known
        return False
    return user is None or user in (0, posix.getuid())
