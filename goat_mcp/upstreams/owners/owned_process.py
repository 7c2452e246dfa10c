"""The processes of one key that this replica owns, as long as it holds their lease.

Nothing is written to them past the lease, by this machine's clock: another replica may have started its own by then.
An owner that cannot ask the shared state keeps its process and refuses calls; one that has lost the lease ends it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import anyio.abc

from goat_mcp.core.errors import ToolError
from goat_mcp.state.replicas.lease import Lease
from goat_mcp.state.replicas.registry import RENEWALS_IN_A_LEASE, ReplicaRegistry
from goat_mcp.upstreams.owners.process_key import ProcessKey
from goat_mcp.upstreams.sharing.broker import IDLE_S, MAX_LINE_BYTES
from goat_mcp.upstreams.sharing.broker_session import BrokerSession
from goat_mcp.upstreams.sharing.process_host import ProcessHost
from goat_mcp.upstreams.sharing.shared_launch import Opening
from goat_mcp.upstreams.sharing.shared_process import OpenProcess

LOOK_S = 1.0


@dataclass(eq=False)
class OwnedProcess:
    """`run` is its task. `holder` is the lease's value: who this replica is."""

    key: ProcessKey
    lease: Lease
    registry: ReplicaRegistry
    holder: str
    open_process: OpenProcess
    idle_s: float = IDLE_S
    over: anyio.Event = field(default_factory=anyio.Event)
    is_ending: bool = False
    """Whether nobody may join any more."""
    _host: ProcessHost | None = None
    _group: anyio.abc.TaskGroup | None = None
    _sessions: int = 0

    def __post_init__(self) -> None:
        self._fence = self.registry.me.fence

    def may_write(self) -> bool:
        """Whether no other replica can own it now. Also as this replica: the others take over what a dead one held."""
        registry = self.registry
        return self.lease.is_held and registry.is_held and registry.me.fence == self._fence

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Until nobody has used it for a while, or the lease is lost. Then all of it has ended, and the next can own
        it."""
        try:
            async with anyio.create_task_group() as self._group:
                self._host = ProcessHost(self._group, self.open_process, idle_s=self.idle_s, may_write=self.may_write)
                task_status.started()
                self._group.start_soon(self._look, self._host)
                await self._hold()
                self.is_ending = True
                self._host.stop()
                self._group.cancel_scope.cancel()
        finally:
            self.is_ending = True
            with anyio.move_on_after(LOOK_S, shield=True):
                with suppress(ToolError):  # it runs out
                    await self.lease.release()
            self.over.set()

    @asynccontextmanager
    async def joined(self, opening: Opening, pid: int) -> AsyncGenerator[socket.socket]:
        """A session's end of a connection to the process; `pid` is the session's, for people."""
        assert self._group is not None
        theirs, ours = socket.socketpair()
        theirs.setblocking(False)
        self._sessions += 1
        scope = anyio.CancelScope()
        try:
            reader, writer = await asyncio.open_connection(sock=ours, limit=MAX_LINE_BYTES)
            self._group.start_soon(self._serve, BrokerSession(writer, opening, pid), reader, scope)
            yield theirs
        finally:
            self._sessions -= 1
            scope.cancel()
            theirs.close()

    async def _serve(self, session: BrokerSession, reader: asyncio.StreamReader, scope: anyio.CancelScope) -> None:
        assert self._host is not None
        try:
            # It broke off, or what it sent is none of ours: that ends this session, and no other.
            with scope, suppress(OSError, ValueError):
                await self._host.serve(session, reader)
        finally:
            session.close()

    async def _look(self, host: ProcessHost) -> None:
        while True:
            await anyio.sleep(LOOK_S)
            host.look()

    async def _hold(self) -> None:
        """Return when it is not needed any more, or not ours."""
        every_s = self.registry.lease_s / RENEWALS_IN_A_LEASE
        unused_s = 0.0
        while unused_s < self.idle_s:
            await anyio.sleep(every_s)
            assert self._host is not None
            unused_s = 0.0 if self._sessions or self._host.has_processes else unused_s + every_s
            if self.registry.me.fence != self._fence:
                return
            # If nobody knows, `may_write` says no from the end of the lease on.
            with suppress(ToolError):
                if not await self.lease.renew(self.holder):
                    return
