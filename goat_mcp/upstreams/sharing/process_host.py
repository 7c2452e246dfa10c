"""The processes of shared launches and the sessions that use each: which process a session gets, and when one ends.

It neither listens nor decides who may come: that is the broker's business, or the owner's among replicas.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import anyio.abc

from goat_mcp.upstreams.faults import StartFailure
from goat_mcp.upstreams.sharing.broker_session import BrokerSession
from goat_mcp.upstreams.sharing.shared_launch import SharedLaunch
from goat_mcp.upstreams.sharing.shared_process import OpenProcess, SharedProcess, always
from goat_mcp.upstreams.status import ReasonCode
from goat_mcp.upstreams.transports.frames import loads


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


class ProcessHost:
    """`open_process` starts one; it lives in `group`. `may_write` is asked before each write to a process."""

    def __init__(
        self,
        group: anyio.abc.TaskGroup,
        open_process: OpenProcess,
        *,
        idle_s: float,
        may_write: Callable[[], bool] = always,
    ) -> None:
        self._group = group
        self._open_process = open_process
        self._may_write = may_write
        self._idle_s = idle_s
        self._shared: dict[SharedLaunch, _Shared] = {}

    @property
    def has_processes(self) -> bool:
        return any(shared.processes for shared in self._shared.values())

    @property
    def sessions(self) -> list[BrokerSession]:
        return [session for shared in self._shared.values() for session in shared.sessions]

    def look(self) -> None:
        """End what nobody has used for a while, and report what has changed."""
        now_s = time.monotonic()
        for shared in list(self._shared.values()):
            self._look_at(shared, now_s)

    def stop(self) -> None:
        """End all processes. Their sessions learn which of their requests may have taken effect."""
        for shared in self._shared.values():
            for process in shared.processes:
                process.stop()

    def _look_at(self, shared: _Shared, now_s: float) -> None:
        for process in shared.processes:
            process.show_status()
            if not process.sessions and now_s - process.used_s >= self._idle_s:
                process.stop()
        if shared.processes or shared.sessions:
            shared.used_s = now_s
        elif not shared.has_asked or now_s - shared.used_s >= self._idle_s:
            # It holds values of secrets.
            del self._shared[shared.launch]

    async def serve(self, session: BrokerSession, reader: asyncio.StreamReader) -> None:
        """Until the session ends, or its connection."""
        launch = session.opening.launch
        shared = self._shared.setdefault(launch, _Shared(launch))
        shared.has_asked = shared.has_asked or session.opening.asks
        shared.sessions.add(session)
        try:
            with session.scope:
                await self._relay(shared, session, reader)
        finally:
            shared.sessions.remove(session)
            self._leave(session)

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
        process = SharedProcess(shared.launch, self._open_process, shared.asks, self._may_write)
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
