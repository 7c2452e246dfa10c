"""One process that the broker runs for the sessions that have the same launch, from its start to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.upstreams.config.entry import Confine, SandboxOptions, StdioLaunch
from goat_mcp.upstreams.faults import FaultKind, StartFailure
from goat_mcp.upstreams.sharing.multiplexer import CANCELLED, Channel, Id, Multiplexer
from goat_mcp.upstreams.sharing.shared_launch import SharedLaunch
from goat_mcp.upstreams.status import ReasonCode
from goat_mcp.upstreams.transports.child_pipes import DirectDispatch, Outbox, StdioTransport
from goat_mcp.upstreams.transports.frame_inbox import Inbox
from goat_mcp.upstreams.transports.stdio_transport import stdio_transport

OpenProcess = Callable[[SharedLaunch], AbstractAsyncContextManager[tuple[StdioTransport, Inbox, Outbox]]]
"""Runs a process meanwhile. Raises `StartFailure`."""


def open_shared(
    launch: SharedLaunch,
    guard: ProcessGuard | None,
    sandbox: SandboxOptions | None = None,
    confine: Confine | None = None,
) -> AbstractAsyncContextManager[tuple[StdioTransport, Inbox, Outbox]]:
    """As it was asked for, with no more in its environment than that."""
    own = StdioLaunch(launch.command, launch.args, {}, launch.cwd, sandbox=sandbox)
    return stdio_transport(own, guard=guard, confine=confine, environment=dict(launch.environment))


def always() -> bool:
    """Nobody else can have taken the process over."""
    return True


class SessionChannel(Channel, Protocol):
    """A session as its process sees it."""

    pid: int

    def report(self, kind: str, facts: Mapping[str, Any]) -> None:
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
    open_process: OpenProcess
    asks: Callable[[], bool]
    may_write: Callable[[], bool] = always
    """Asked before each write to the process: another may have been started in its place."""
    started: anyio.Event = field(default_factory=anyio.Event)
    failure: StartFailure | None = None
    sessions: set[SessionChannel] = field(default_factory=set[SessionChannel])
    used_s: float = field(default_factory=time.monotonic)
    """When a session has used it last, or was still connected."""
    is_over: bool = False
    """Whether nobody can use it any more."""
    was_stopped: bool = False
    """Whether it is to end, as against ending by itself."""
    link: StdioTransport | None = None
    _outbox: Outbox | None = None
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _shown: object = None
    _unread_answers: list[Id] = field(default_factory=list[Id])
    """Which of its requests were answered into a full pipe: as long as it reads no answer, it has them open."""

    def __post_init__(self) -> None:
        self.frames = Multiplexer(self._write, self.asks)

    async def run(self) -> None:
        """From the start of the process until it has ended and all that it started with it."""
        try:
            with self._scope:
                async with self.open_process(self.launch) as (link, inbox, outbox):
                    self.link, self._outbox = link, outbox
                    link.direct = _Relay(self.frames.from_process)
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
        except Exception as problem:
            # Whatever one launch or one process brings about, the processes of the others go on.
            self.failure = StartFailure(ReasonCode.CONNECTION_BROKE, f"the connection broke: {type(problem).__name__}")
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
        self.sessions.add(session)
        self.frames.join(session)
        self.used_s = time.monotonic()
        self.show_status(always=True)

    def leave(self, session: SessionChannel) -> None:
        if session not in self.sessions:
            return
        self.sessions.remove(session)
        self.used_s = time.monotonic()
        self.frames.leave(session)
        if self._outbox is not None and self._outbox.is_full:
            # It may hang: what this session has sent to find out may not have got that far.
            self.frames.is_retired = True
        if not self.sessions and (self.frames.is_retired or not self.frames.is_ready):
            self.stop()
        self.show_status(always=True)

    def retire(self) -> None:
        """Let nobody join any more. It ends with the last session that uses it."""
        self.frames.is_retired = True
        if not self.sessions:
            self.stop()

    async def take(self, session: SessionChannel, frame: Mapping[str, Any]) -> None:
        """One frame of a session."""
        self.used_s = time.monotonic()
        # A frame that did not reach the process is none that `ending_for` names.
        is_written = self.frames.from_session(session, frame)
        if not is_written and not self.is_over and not self.may_write():
            facts = {"kind": FaultKind.UNREACHABLE, "detail": "this replica does not own the process any more"}
            session.report("fault", {**facts, "id": frame.get("id")})
        elif is_written and self._outbox is not None:
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
        self._forget_answered()
        junk, oversized = link.junk()
        shown = {
            "pid": link.pid,
            "sessions": sorted({one.pid for one in self.sessions}),
            "junk": junk,
            "oversized": oversized,
            "dropped": link.limits.dropped,
            "stderr": link.stderr_tail.decode("utf-8", "replace"),
        }
        if always or shown != self._shown:
            self._shown = shown
            for session in list(self.sessions):
                session.report("status", shown)

    def _write(self, message: JSONRPCMessage) -> bool:
        is_written = self._outbox is not None and self.may_write() and self._outbox.post(message)
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._unread_answers.append(message.id)
            self._forget_answered()
        return is_written

    def _forget_answered(self) -> None:
        if self.link is not None and self._outbox is not None and not self._outbox.is_full:
            self.link.questions.difference_update(self._unread_answers)
            self._unread_answers.clear()

    def _end_sessions(self) -> None:
        self.is_over = True
        for session in list(self.sessions):
            session.end(self.ending_for(session))
        self.sessions.clear()
