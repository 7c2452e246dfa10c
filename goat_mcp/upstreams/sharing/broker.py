"""The broker: owns the processes of shared upstreams, and hands each session the frames that are its own.

One per build and user. It judges nothing that an upstream sends, and writes nothing to any file. It ends a process that
nobody has used for a while, and itself when it has none left. What a session does is in `shared_transport`.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import anyio.abc

from goat_mcp.core import posix
from goat_mcp.processes.asyncio_children import watch_exits_without_threads
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.upstreams.faults import StartFailure
from goat_mcp.upstreams.sharing.broker_session import BrokerSession
from goat_mcp.upstreams.sharing.runtime_folder import OwnedSocket, is_confined_as_we_are, peer_of
from goat_mcp.upstreams.sharing.shared_launch import SharedLaunch, opening_in
from goat_mcp.upstreams.sharing.shared_process import SharedProcess
from goat_mcp.upstreams.status import ReasonCode
from goat_mcp.upstreams.transports.frames import MAX_FRAME_BYTES, loads

IDLE_S = 600.0
"""A process that nobody has used for so long is ended, and the broker when it has had none for so long."""
LOOK_S = 1.0
"""How often it looks who is idle, and reports to sessions what has changed."""
MAX_LINE_BYTES = 2 * MAX_FRAME_BYTES
"""A frame may grow a little when its ids are replaced; a session sends none that is larger than its own client may."""
_SIGHUP: signal.Signals = getattr(signal, "SIGHUP", signal.SIGTERM)


@dataclass(eq=False)
class _Shared:
    """All processes of one launch: more than one only if sessions differ in what they can be asked."""

    launch: SharedLaunch
    processes: list[SharedProcess] = field(default_factory=list[SharedProcess])
    sessions: set[BrokerSession] = field(default_factory=set[BrokerSession])
    has_asked: bool = False
    used_s: float = field(default_factory=time.monotonic)

    def asks(self) -> bool:
        return self.has_asked or any(one.frames.has_asked for one in self.processes)


class Broker:
    """`run` serves until nobody needs it any more."""

    def __init__(self, owned: OwnedSocket, *, guard: ProcessGuard, idle_s: float = IDLE_S) -> None:
        self._owned = owned
        self._guard = guard
        self._idle_s = idle_s
        self._shared: dict[SharedLaunch, _Shared] = {}
        self._connections = 0
        self._group: anyio.abc.TaskGroup | None = None
        self._server: asyncio.Server | None = None

    async def run(self) -> None:
        """Serve. When this returns, nothing of ours is left."""
        start_unix_server = getattr(asyncio, "start_unix_server")  # noqa: B009  # Windows' asyncio does not have it
        try:
            async with anyio.create_task_group() as self._group:
                # Tasks of the group and not of the server: what fails in one must not go unseen.
                self._server = await start_unix_server(self._accepted, sock=self._owned.listening, limit=MAX_LINE_BYTES)
                await self._until_unused()
                self._group.cancel_scope.cancel()
        finally:
            self._stop_listening()
            self._guard.close()

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
        self._owned.release()

    async def _until_unused(self) -> None:
        look_s = min(LOOK_S, self._idle_s / 4)
        needed_s = time.monotonic()
        while True:
            await anyio.sleep(look_s)
            now_s = time.monotonic()
            if not self._owned.is_found():
                # Somebody has removed the socket. Sessions that come find another broker, those that are here stay.
                self._stop_listening()
            for shared in list(self._shared.values()):
                self._look_at(shared, now_s)
            if self._connections or any(shared.processes for shared in self._shared.values()):
                needed_s = now_s
            elif now_s - needed_s >= self._idle_s or not self._owned.is_held:
                return

    def _look_at(self, shared: _Shared, now_s: float) -> None:
        for session in list(shared.sessions):
            session.look()
        for process in shared.processes:
            process.show_status()
            if not process.sessions and now_s - process.used_s >= self._idle_s:
                process.stop()
        if shared.processes or shared.sessions:
            shared.used_s = now_s
        elif not shared.has_asked or now_s - shared.used_s >= self._idle_s:
            # It holds values of secrets.
            del self._shared[shared.launch]

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._group is None:
            writer.close()
            return
        self._connections += 1
        self._group.start_soon(self._serve, reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            pid, user = peer_of(writer.get_extra_info("socket"))
            if user == posix.geteuid():
                await self._serve_session(reader, writer, pid)
        except Exception:
            # It broke off, or what it sent is none of ours: that ends this session's connection, and no other's.
            writer.transport.abort()
        finally:
            self._connections -= 1
            writer.close()

    async def _serve_session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int) -> None:
        opening = opening_in(loads(await reader.readline()))
        session = BrokerSession(writer, opening, pid)
        if not is_confined_as_we_are(pid):
            session.report("refused", {"why": "this goat-mcp is confined in another way than the broker"})
            return
        shared = self._shared.setdefault(opening.launch, _Shared(opening.launch))
        shared.has_asked = shared.has_asked or opening.asks
        shared.sessions.add(session)
        try:
            with session.scope:
                await self._relay(shared, session, reader)
        finally:
            shared.sessions.remove(session)
            self._leave(session)
        if session.scope.cancelled_caught:
            writer.transport.abort()

    async def _relay(self, shared: _Shared, session: BrokerSession, reader: asyncio.StreamReader) -> None:
        try:
            process = await self._process_for(shared, session, None)
            if process.link is not None:
                session.report("opened", {"pid": process.link.pid})
            while line := await reader.readline():
                if session.is_over:
                    continue
                frame: Any = loads(line)
                if isinstance(frame, dict):
                    await self._take(shared, session, cast("dict[str, Any]", frame))
        except StartFailure as failure:
            session.report("failed", {"reason_code": str(failure.reason_code), "message": failure.message})
            session.end({"exit_status": None, "stderr": failure.message, "written": [], "moved": False})
            while await reader.readline():
                pass  # it was sent before the session knew

    async def _take(self, shared: _Shared, session: BrokerSession, frame: dict[str, Any]) -> None:
        params = frame.get("params")
        if frame.get("method") == "initialize" and session.process is not None and isinstance(params, dict):
            about = cast("dict[str, Any]", params)
            if not session.process.frames.fits(session, about):
                # It can be asked other things than those who are there, or they speak another era.
                self._leave(session)
                await self._process_for(shared, session, about)
        if session.process is not None:
            await session.process.take(session, frame)

    async def _process_for(
        self, shared: _Shared, session: BrokerSession, handshake: Mapping[str, Any] | None
    ) -> SharedProcess:
        """A process that this session may use, with it in it. Raises `StartFailure`.

        How often that is tried is the sessions' business: each waits longer after each failure.
        """
        for process in shared.processes:
            if process.link is not None and process.link.pid in session.opening.leaves:
                process.retire()
        while True:
            process = next((one for one in shared.processes if _is_open(one, session, handshake)), None)
            process = process or self._start(shared)
            await process.started.wait()
            if process.failure is not None:
                raise process.failure
            if process.is_over:
                raise StartFailure(ReasonCode.START_FAILED, process.last_words())
            if _is_open(process, session, handshake):
                process.join(session)
                session.process = process
                return process

    def _start(self, shared: _Shared) -> SharedProcess:
        assert self._group is not None
        process = SharedProcess(shared.launch, self._guard, shared.asks)
        shared.processes.append(process)
        self._group.start_soon(self._keep, shared, process)
        return process

    async def _keep(self, shared: _Shared, process: SharedProcess) -> None:
        try:
            await process.run()
        finally:
            shared.has_asked = shared.asks()
            shared.processes.remove(process)

    def _leave(self, session: BrokerSession) -> None:
        process, session.process = session.process, None
        if process is None or process.is_over:
            return
        process.leave(session)


def _is_open(process: SharedProcess, session: BrokerSession, handshake: Mapping[str, Any] | None) -> bool:
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
    watch_exits_without_threads()
    asyncio.run(Broker(owned, guard=ProcessGuard(), idle_s=idle_s).run())
