"""What went out on the streams of the handshake era, so that a client that lost one gets the rest (`Last-Event-ID`).

In memory, the newest of all sessions together: a session is in this process, and so are its events. A client gets only
events of its own session, and of one stream only if none of them is missing.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import anyio
import mcp_types as types
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore

from goat_mcp.server.stdio.frame_writer import message_frame

RETRY_MS = 1000
"""When a client should come back for a stream that it has lost."""
FIRST_VERSION = "2025-11-25"
"""Of the protocol, in which a stream begins with an event that has an id and no data."""
COME_BACK_S = 5.0
"""A call whose client has lost its stream goes on for so long; then nobody wants its answer (FLW-2)."""
MAX_BYTES = 4 * 1024 * 1024
MAX_SESSION_BYTES = 1024 * 1024
_OVERHEAD_BYTES = 200
_ID_DIGITS = 18
_OF_CALL = "call:"


@dataclass(frozen=True)
class _Event:
    session: SessionEvents
    stream: str
    frame: bytes
    """Empty if it only has an id."""
    is_last: bool

    @property
    def size(self) -> int:
        return len(self.frame) + _OVERHEAD_BYTES


class StreamEvents(EventStore):
    """Those of all sessions. The SDK gives no session with an event: it is the one of the request being served."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_session_bytes: int = MAX_SESSION_BYTES) -> None:
        self.max_session_bytes = max_session_bytes
        self._max_bytes = max_bytes
        self._bytes = 0
        self._number = 0
        self._events: dict[int, _Event] = {}
        self._session: ContextVar[SessionEvents | None] = ContextVar("session_events", default=None)

    @property
    def is_empty(self) -> bool:
        return not self._events and not self._bytes

    def new_session(self) -> SessionEvents:
        return SessionEvents(self)

    @contextmanager
    def used_by(self, session: SessionEvents | None) -> Generator[None]:
        """Until the block ends, in it and in what it starts, events are this session's."""
        before = self._session.set(session)
        try:
            yield
        finally:
            self._session.reset(before)

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        session = self._session.get()
        if session is None:
            self._number += 1
            return str(self._number)  # nobody can ask for it
        return session.keep(stream_id, message)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send what came after that event. Returns the stream if the SDK is to go on with it."""
        session = self._session.get()
        return None if session is None else await session.replay(last_event_id, send_callback)

    def add(self, event: _Event) -> int:
        self._number += 1
        self._events[self._number] = event
        self._bytes += event.size
        return self._number

    def make_room(self) -> None:
        while self._bytes > self._max_bytes:
            oldest, event = next(iter(self._events.items()))
            event.session.drop_up_to(oldest)

    def get(self, number: int) -> _Event | None:
        return self._events.get(number)

    def remove(self, number: int) -> _Event:
        event = self._events.pop(number)
        self._bytes -= event.size
        return event


@dataclass(eq=False)
class SessionEvents:
    """Those of one session, which its principal alone gets to. The oldest are dropped."""

    store: StreamEvents
    _numbers: dict[int, None] = field(default_factory=dict[int, None])
    _bytes: int = 0
    _calls: int = 0
    _news: anyio.Event = field(default_factory=anyio.Event)
    _listeners: int = 0
    _listened_until_s: float = float("-inf")

    @contextmanager
    def resumed(self) -> Generator[None]:
        """The client listens again, on a stream that it had lost."""
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1
            self._listened_until_s = time.monotonic()

    async def until_abandoned(self) -> None:
        """Return when a client that has just lost a stream has not come back in time for any of the session's."""
        lost_s = time.monotonic()
        while self._listeners or time.monotonic() - max(lost_s, self._listened_until_s) < COME_BACK_S:  # noqa: ASYNC110
            await anyio.sleep(COME_BACK_S / 20)  # time is what it waits for

    def new_stream(self) -> str:
        """The stream of a call that the SDK does not serve."""
        self._calls += 1
        return f"{_OF_CALL}{self._calls}"

    def keep(self, stream: str, message: types.JSONRPCMessage | None) -> str:
        """Returns the id of the event. Without a message it has only an id."""
        is_last = isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None
        return self.keep_frame(stream, b"" if message is None else message_frame(message), is_last=is_last)

    def keep_frame(self, stream: str, frame: bytes, *, is_last: bool) -> str:
        event = _Event(self, stream, frame, is_last)
        self._bytes += event.size
        number = self.store.add(event)
        self._numbers[number] = None
        self.store.make_room()
        while self._bytes > self.store.max_session_bytes:
            self.drop_up_to(next(iter(self._numbers)))
        self._news.set()
        self._news = anyio.Event()
        return str(number)

    def drop_up_to(self, number: int) -> None:
        """This event and all before it."""
        for old in [one for one in self._numbers if one <= number]:
            del self._numbers[old]
            self._bytes -= self.store.remove(old).size

    def forget_all(self) -> None:
        """The session has ended."""
        if self._numbers:
            self.drop_up_to(next(reversed(self._numbers)))

    async def replay(self, last_event_id: str, send: EventCallback) -> str | None:
        """What came after that event on its stream; of a call's own stream also what comes, until its answer."""
        is_id = last_event_id.isascii() and last_event_id.isdecimal() and len(last_event_id) <= _ID_DIGITS
        seen = int(last_event_id) if is_id else 0
        while (last := self.store.get(seen)) is not None and last.session is self and not last.is_last:
            news, stream = self._news, last.stream
            for number in [one for one in self._numbers if one > seen]:
                event = self.store.get(number)
                if event is None or event.stream != stream:
                    continue
                seen = number
                if event.frame:
                    message = types.jsonrpc_message_adapter.validate_json(event.frame, by_name=False)
                    await send(EventMessage(message, str(number)))
                if event.is_last:
                    return None
            if not stream.startswith(_OF_CALL):
                return stream
            await news.wait()
        return None
