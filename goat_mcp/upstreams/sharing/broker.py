"""The broker: owns the processes of shared upstreams, and hands each session the frames that are its own.

One per build and user. It judges nothing that an upstream sends, and writes nothing to any file. It ends a process that
nobody has used for a while, and itself when it has none left. What a session does is in `shared_transport`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import anyio
import anyio.abc
from mcp_types import ErrorData

from goat_mcp.core import posix
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.upstreams.faults import StartFailure
from goat_mcp.upstreams.retry_policy import RetryLimits, RetryPolicy
from goat_mcp.upstreams.sharing.multiplexer import Id
from goat_mcp.upstreams.sharing.runtime_folder import OwnedSocket, is_confined_as_we_are, peer_of
from goat_mcp.upstreams.sharing.shared_launch import Opening, SharedLaunch, opening_in
from goat_mcp.upstreams.sharing.shared_process import SharedProcess
from goat_mcp.upstreams.status import ReasonCode
from goat_mcp.upstreams.transports.frames import MAX_FRAME_BYTES, encode, loads

IDLE_S = 600.0
"""A process that nobody has used for so long is ended, and the broker when it has had none for so long."""
LOOK_S = 1.0
"""How often it looks who is idle, and tells sessions what has changed."""
MAX_LINE_BYTES = 2 * MAX_FRAME_BYTES
"""A frame may grow a little when its ids are replaced; a session sends none that is larger than its own client may."""
MAX_UNREAD_BYTES = 4 * MAX_FRAME_BYTES
"""A session that reads no more than this is cut off: the others should not wait for it."""
STABLE_AFTER_S = 60.0
_SIGHUP: signal.Signals = getattr(signal, "SIGHUP", signal.SIGTERM)


@dataclass(eq=False)
class _Shared:
    """All processes of one launch: more than one only if sessions differ in what they can be asked."""

    launch: SharedLaunch
    retry: RetryPolicy
    processes: list[SharedProcess] = field(default_factory=list[SharedProcess])
    has_asked: bool = False
    failure: StartFailure | None = None

    def asks(self) -> bool:
        return self.has_asked or any(one.frames.has_asked for one in self.processes)


class _Session:
    """One session's connection to the broker."""

    def __init__(self, writer: asyncio.StreamWriter, opening: Opening, pid: int) -> None:
        self.pid = pid
        self.opening = opening
        self.process: SharedProcess | None = None
        self._writer = writer
        self._must_leave = False
        self.is_over = False
        """Whether the session knows that nothing more of it reaches the process."""

    def deliver(self, frame: dict[str, Any]) -> None:
        if self.is_over or self._writer.is_closing():
            return
        self._writer.write(encode(frame))
        if self._writer.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._writer.transport.abort()
        elif self._must_leave:
            # This may have been what it waited for.
            asyncio.get_running_loop().call_soon(self.leave_when_idle)

    def failed(self, request_id: Id, error: ErrorData) -> None:
        link = self.process.link if self.process is not None else None
        fault = link.marks.read(error.data) if link is not None else None
        if fault is not None:
            self.tell("fault", {"id": request_id, "kind": str(fault.kind), "detail": fault.detail})
            return
        shown = error.model_dump(by_alias=True, exclude_unset=True)
        self.deliver({"jsonrpc": "2.0", "id": request_id, "error": shown})

    def tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        told = {kind: {**facts, "broker": os.getpid()}}
        self.deliver({"jsonrpc": "2.0", "method": self.opening.control, "params": told})

    def end(self, facts: Mapping[str, Any]) -> None:
        self._must_leave = False
        self.tell("ended", facts)
        self.is_over = True
        # The session closes it: who writes into a socket that is closed already never reads these words.
        self._writer.write_eof()

    def leave_when_idle(self) -> None:
        process = self.process
        if process is None or self.is_over:
            return
        self._must_leave = process.frames.waits(self)
        if not self._must_leave:
            self.end(process.ending_for(self, has_moved=True))


class Broker:
    """`run` serves until nobody needs it any more."""

    def __init__(
        self,
        owned: OwnedSocket,
        *,
        guard: ProcessGuard,
        idle_s: float = IDLE_S,
        retry: RetryLimits | None = None,
    ) -> None:
        self._owned = owned
        self._guard = guard
        self._idle_s = idle_s
        self._retry_limits = retry or RetryLimits()
        self._shared: dict[SharedLaunch, _Shared] = {}
        self._sessions = 0
        self._needed_s = time.monotonic()
        self._group: anyio.abc.TaskGroup | None = None

    async def run(self) -> None:
        """Serve. When this returns, nothing of ours is left."""
        server: asyncio.Server | None = None
        start_unix_server = getattr(asyncio, "start_unix_server")  # noqa: B009  # Windows' asyncio does not have it
        try:
            async with anyio.create_task_group() as self._group:
                # Tasks of the group and not of the server: what fails in one must not go unseen.
                server = await start_unix_server(self._accepted, sock=self._owned.listening, limit=MAX_LINE_BYTES)
                await self._until_unused()
                self._owned.release()
                self._group.cancel_scope.cancel()
        finally:
            if server is not None:
                server.close()
            self._guard.close()

    async def _until_unused(self) -> None:
        look_s = min(LOOK_S, self._idle_s / 4)
        while True:
            await anyio.sleep(look_s)
            now_s = time.monotonic()
            processes = [process for shared in self._shared.values() for process in shared.processes]
            for process in processes:
                process.show_status()
                if not process.sessions and now_s - process.used_s >= self._idle_s:
                    process.stop()
            if processes or self._sessions:
                self._needed_s = now_s
            elif now_s - self._needed_s >= self._idle_s:
                return

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._group is None:
            writer.close()
            return
        self._group.start_soon(self._serve, reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._sessions += 1
        try:
            pid, user = peer_of(writer.get_extra_info("socket"))
            if user == posix.geteuid():
                await self._serve_session(reader, writer, pid)
        except Exception:
            # It broke off, or what it sent is none of ours: that ends this session's connection, and no other's.
            writer.transport.abort()
        finally:
            self._sessions -= 1
            writer.close()

    async def _serve_session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int) -> None:
        opening = opening_in(loads(await reader.readline()))
        session = _Session(writer, opening, pid)
        if not is_confined_as_we_are(pid):
            session.tell("refused", {"why": "this goat-mcp is confined in another way than the broker"})
            return
        shared = self._shared.setdefault(opening.launch, _Shared(opening.launch, RetryPolicy(self._retry_limits)))
        shared.has_asked = shared.has_asked or opening.asks
        try:
            process = await self._process_for(shared, session, None)
            if process.link is not None:
                session.tell("opened", {"pid": process.link.pid})
            while line := await reader.readline():
                if session.is_over:
                    continue
                frame: Any = loads(line)
                if isinstance(frame, dict):
                    await self._take(shared, session, cast("dict[str, Any]", frame))
        except StartFailure as failure:
            session.tell("failed", {"reason_code": str(failure.reason_code), "message": failure.message})
            session.end({"exit_status": None, "stderr": failure.message, "written": [], "moved": False})
            while await reader.readline():
                pass  # it was sent before the session knew
        finally:
            self._gone(shared, session)

    async def _take(self, shared: _Shared, session: _Session, frame: dict[str, Any]) -> None:
        params = frame.get("params")
        if frame.get("method") == "initialize" and session.process is not None and isinstance(params, dict):
            about = cast("dict[str, Any]", params)
            if not session.process.frames.fits(session, about):
                # It can be asked other things than those who are there, or they speak another era.
                self._leave(shared, session)
                await self._process_for(shared, session, about)
        if session.process is not None:
            await session.process.take(session, frame)

    async def _process_for(
        self, shared: _Shared, session: _Session, handshake: Mapping[str, Any] | None
    ) -> SharedProcess:
        """A process that this session may use, with it in it. Raises `StartFailure`."""
        while True:
            found = next((one for one in shared.processes if _is_open(one, session, handshake)), None)
            if found is None:
                now_s = time.monotonic()
                if shared.retry.is_open(now_s) and shared.failure is not None:
                    raise shared.failure
                if (wait_s := shared.retry.wait_s(now_s)) > 0:
                    # Whoever waits with us finds the process of the first.
                    await anyio.sleep(wait_s)
                    continue
                found = self._start(shared)
            await found.started.wait()
            if found.failure is not None:
                raise found.failure
            if _is_open(found, session, handshake):
                found.join(session)
                session.process = found
                return found

    def _start(self, shared: _Shared) -> SharedProcess:
        assert self._group is not None
        process = SharedProcess(shared.launch, self._guard, shared.asks)
        shared.processes.append(process)
        self._group.start_soon(partial(self._keep, shared, process))
        return process

    async def _keep(self, shared: _Shared, process: SharedProcess) -> None:
        """Run the process, and note how it ended."""
        try:
            await process.run()
        finally:
            self._note_end(shared, process)

    def _note_end(self, shared: _Shared, process: SharedProcess) -> None:
        shared.has_asked = shared.asks()
        if process in shared.processes:
            shared.processes.remove(process)
        if process.was_stopped:
            return
        now_s = time.monotonic()
        if process.frames.has_worked or now_s - process.started_s > STABLE_AFTER_S:
            shared.retry.worked()
        shared.retry.failed(now_s)
        shared.failure = process.failure or StartFailure(ReasonCode.LOST, process.last_words())

    def _leave(self, shared: _Shared, session: _Session) -> None:
        process, session.process = session.process, None
        if process is None or process.is_over:
            return
        process.leave(session)
        if process.sessions:
            return
        if process.frames.is_retired or not process.frames.is_ready:
            if not process.frames.has_answered:
                # Nobody has ever heard of it: as a start that failed.
                shared.retry.failed(time.monotonic())
                shared.failure = StartFailure(ReasonCode.START_TIMEOUT, f"it did not answer; {process.last_words()}")
            process.stop()

    def _gone(self, shared: _Shared, session: _Session) -> None:
        self._leave(shared, session)
        if not shared.processes and not shared.retry.failures and not shared.has_asked:
            self._shared.pop(shared.launch, None)


def _is_open(process: SharedProcess, session: _Session, handshake: Mapping[str, Any] | None) -> bool:
    """Whether the session may join."""
    if process.is_over or process.was_stopped or process.failure is not None:
        return False
    if process.frames.is_retired or process.frames.owner is not None:
        return False
    return handshake is None or process.frames.fits(session, handshake)


def run_broker(owned: OwnedSocket, *, idle_s: float = IDLE_S) -> None:
    """Be the broker until it is not needed any more, in a process of its own that has nothing else to do.

    For a fork, too: nothing of the process that was forked is used but what it has imported.
    """
    # Servers block the signals that end them, and whoever they start inherits that.
    posix.set_signal_mask(posix.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT, _SIGHUP})
    for number in (signal.SIGTERM, signal.SIGINT, _SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    asyncio.run(Broker(owned, guard=ProcessGuard(), idle_s=idle_s).run())
