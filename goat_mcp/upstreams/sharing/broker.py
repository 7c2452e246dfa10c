"""The broker: owns the processes of shared upstreams, and hands each session the frames that are its own.

One per build and user. It judges nothing that an upstream sends, and writes nothing to any file. It ends a process that
nobody has used for a while, and itself when it has none left. What a session does is in `shared_transport`.
"""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import AbstractAsyncContextManager

import anyio
import anyio.abc

from goat_mcp.core import posix
from goat_mcp.processes.asyncio_children import watch_exits_without_threads
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.upstreams.sharing.broker_session import BrokerSession
from goat_mcp.upstreams.sharing.process_host import ProcessHost
from goat_mcp.upstreams.sharing.runtime_folder import OwnedSocket, is_confined_as_we_are, peer_of
from goat_mcp.upstreams.sharing.shared_launch import SharedLaunch, opening_in
from goat_mcp.upstreams.sharing.shared_process import open_shared
from goat_mcp.upstreams.transports.child_pipes import Outbox, StdioTransport
from goat_mcp.upstreams.transports.frame_inbox import Inbox
from goat_mcp.upstreams.transports.frames import MAX_FRAME_BYTES, loads

IDLE_S = 600.0
"""A process that nobody has used for so long is ended, and the broker when it has had none for so long."""
LOOK_S = 1.0
"""How often it looks who is idle, and reports to sessions what has changed."""
MAX_LINE_BYTES = 2 * MAX_FRAME_BYTES
"""A frame may grow a little when its ids are replaced; a session sends none that is larger than its own client may."""
_SIGHUP: signal.Signals = getattr(signal, "SIGHUP", signal.SIGTERM)


class Broker:
    """`run` serves until nobody needs it any more."""

    def __init__(self, owned: OwnedSocket, *, guard: ProcessGuard, idle_s: float = IDLE_S) -> None:
        self._owned = owned
        self._guard = guard
        self._idle_s = idle_s
        self._host: ProcessHost | None = None
        self._connections = 0
        self._group: anyio.abc.TaskGroup | None = None
        self._server: asyncio.Server | None = None

    async def run(self) -> None:
        """Serve. When this returns, nothing of ours is left."""
        start_unix_server = getattr(asyncio, "start_unix_server")  # noqa: B009  # Windows' asyncio does not have it
        try:
            async with anyio.create_task_group() as self._group:
                self._host = ProcessHost(self._group, self._open_process, idle_s=self._idle_s)
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
            assert self._host is not None
            for session in self._host.sessions:
                session.look()
            self._host.look()
            if self._connections or self._host.has_processes:
                needed_s = now_s
            elif now_s - needed_s >= self._idle_s or not self._owned.is_held:
                return

    def _open_process(self, launch: SharedLaunch) -> AbstractAsyncContextManager[tuple[StdioTransport, Inbox, Outbox]]:
        return open_shared(launch, self._guard)

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
        assert self._host is not None
        await self._host.serve(session, reader)
        if session.scope.cancelled_caught:
            writer.transport.abort()


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
