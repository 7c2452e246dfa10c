"""One process that the broker runs for the sessions that have the same launch, from its start to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.upstreams.config.entry import StdioLaunch
from goat_mcp.upstreams.faults import StartFailure
from goat_mcp.upstreams.sharing.multiplexer import CANCELLED, Channel, Multiplexer
from goat_mcp.upstreams.sharing.shared_launch import SharedLaunch
from goat_mcp.upstreams.transports.child_pipes import DirectDispatch, Outbox, StdioTransport
from goat_mcp.upstreams.transports.stdio_transport import stdio_transport


class SessionChannel(Channel, Protocol):
    """A session as its process sees it."""

    pid: int

    def tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Send the session a message of the broker's own."""
        ...

    def end(self, facts: Mapping[str, Any]) -> None:
        """The process is gone for this session, and so is the connection after these last words."""
        ...


class _Relay(DirectDispatch):
    """Hands on what the process says where the event loop delivers it. What it asks waits its turn behind it."""

    def __init__(self, take: Callable[[JSONRPCMessage], bool]) -> None:
        super().__init__()
        self._take = take

    def take(self, message: JSONRPCMessage) -> bool:
        if isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
            return False  # in order with what it asks
        return not isinstance(message, JSONRPCRequest) and self._take(message)


@dataclass(eq=False)
class SharedProcess:
    """`run` is its task. `sessions` are those that use it now."""

    launch: SharedLaunch
    guard: ProcessGuard
    asks: Callable[[], bool]
    started: anyio.Event = field(default_factory=anyio.Event)
    failure: StartFailure | None = None
    sessions: dict[Channel, SessionChannel] = field(default_factory=dict[Channel, SessionChannel])
    used_s: float = field(default_factory=time.monotonic)
    started_s: float = field(default_factory=time.monotonic)
    is_over: bool = False
    """Whether nobody can use it any more."""
    was_stopped: bool = False
    """Whether it is to end, as against ending by itself."""
    link: StdioTransport | None = None
    _outbox: Outbox | None = None
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _shown: object = None

    def __post_init__(self) -> None:
        self.frames = Multiplexer(self._write, self.asks)

    async def run(self) -> None:
        """From the start of the process until it has ended and all that it started with it."""
        launch = StdioLaunch(self.launch.command, self.launch.args, {}, self.launch.cwd)
        try:
            with self._scope:
                async with stdio_transport(launch, guard=self.guard, environment=dict(self.launch.environment)) as (
                    link,
                    inbox,
                    outbox,
                ):
                    self.link, self._outbox = link, outbox
                    link.direct = _Relay(self.frames.from_process)
                    self.started_s = time.monotonic()
                    self.started.set()
                    try:
                        async for item in inbox:
                            if not isinstance(item, Exception):
                                self.frames.from_process(item.message)
                    finally:
                        link.has_answered = self.frames.has_answered
                        # Before the process is ended, which may take seconds.
                        self._end_sessions()
        except StartFailure as failure:
            self.failure = failure
        finally:
            self._end_sessions()
            self.started.set()

    def stop(self) -> None:
        """End it. Who uses it still is cut off."""
        self.was_stopped = True
        self._scope.cancel()

    def last_words(self) -> str:
        return self.link.last_words() if self.link is not None else "it did not start"

    def join(self, session: SessionChannel) -> None:
        self.sessions[session] = session
        self.frames.join(session)
        self.used_s = time.monotonic()
        self.show_status(always=True)

    def leave(self, session: SessionChannel) -> None:
        if self.sessions.pop(session, None) is not None:
            self.frames.leave(session)
            self.show_status(always=True)

    async def take(self, session: SessionChannel, frame: Mapping[str, Any]) -> None:
        """One frame of a session."""
        self.used_s = time.monotonic()
        # A frame that did not reach the process is none that `ending_for` names.
        if self.frames.from_session(session, frame) and self._outbox is not None:
            with suppress(anyio.BrokenResourceError):
                await self._outbox.drain()

    def ending_for(self, session: SessionChannel, *, has_moved: bool = False) -> dict[str, Any]:
        """How the connection of a session ended, and which of its requests may have been executed."""
        link = self.link
        return {
            "exit_status": link.exit_status if link is not None else None,
            "stderr": link.stderr_tail.decode("utf-8", "replace") if link is not None else "",
            "written": self.frames.open_requests(session),
            "moved": has_moved,
        }

    def show_status(self, *, always: bool = False) -> None:
        """Tell the sessions who shares the process and what it has said, if that is news."""
        link = self.link
        if link is None or self.is_over:
            return
        junk, oversized = link.junk()
        shown = {
            "pid": link.pid,
            "sessions": sorted({one.pid for one in self.sessions.values()}),
            "junk": junk,
            "oversized": oversized,
            "dropped": link.limits.dropped,
            "stderr": link.stderr_tail.decode("utf-8", "replace"),
        }
        if always or shown != self._shown:
            self._shown = shown
            for session in list(self.sessions.values()):
                session.tell("status", shown)

    def _write(self, message: JSONRPCMessage) -> bool:
        if self.link is not None and isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self.link.questions.discard(message.id)
        return self._outbox is not None and self._outbox.post(message)

    def _end_sessions(self) -> None:
        self.is_over = True
        for session in list(self.sessions.values()):
            session.end(self.ending_for(session))
        self.sessions.clear()
