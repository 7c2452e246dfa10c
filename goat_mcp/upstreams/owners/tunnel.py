"""A session's connection to a process that another replica owns: its bytes, over signed HTTP hops.

What the process says comes as the answer of one long request. What the session says goes in requests of its own, one
after the other, so that nothing overtakes anything.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from goat_mcp.core.errors import ToolError
from goat_mcp.state.replicas.registry import ReplicaRegistry
from goat_mcp.state.replicas.replica import Replica
from goat_mcp.upstreams.faults import StartFailure
from goat_mcp.upstreams.owners.process_key import ProcessKey
from goat_mcp.upstreams.sharing.shared_launch import Opening
from goat_mcp.upstreams.status import ReasonCode
from goat_mcp.web.hops.client import HopClient

if TYPE_CHECKING:  # loaded with the first hop
    import httpx2

PATH = "/upstreams/"
"""Where replicas serve this."""
OPEN, SEND = f"{PATH}open", f"{PATH}send/"
SESSION = "goat-session"
"""The header of an answer to `OPEN` that names the session for `SEND`."""
NOT_OWNER, OTHER_ENTRY, CANNOT_START = 409, 421, 422
CHUNK_BYTES = 256 * 1024


class NotOwner(Exception):
    """Another replica holds the lease, or is about to."""


class Refused(Exception):
    """This replica cannot own it: its configuration is another one. The text says so."""


@asynccontextmanager
async def tunnel(
    hops: HopClient, registry: ReplicaRegistry, owner: Replica, key: ProcessKey, opening: Opening
) -> AsyncGenerator[socket.socket]:
    """The session's end of the connection. It ends when the owner does, or is taken for dead.

    Raises `NotOwner`, `Refused`, `StartFailure`, and what `HopClient.send` raises, while nothing has been sent.
    """
    facts = {"control": opening.control, "asks": opening.asks, "leaves": opening.leaves, "pid": os.getpid()}
    body = json.dumps({"key": key.wire(), **facts}).encode()
    theirs, ours = socket.socketpair()
    try:
        theirs.setblocking(False)
        async with hops.send(owner, "POST", OPEN, headers={"content-type": "application/json"}, body=body) as answer:
            if answer.status_code != 200:
                raise await _refusal(answer, owner)
            reader, writer = await asyncio.open_connection(sock=ours, limit=CHUNK_BYTES)
            pumps = _Pumps(hops, owner, reader, writer)
            async with anyio.create_task_group() as group:
                group.start_soon(pumps.from_owner, answer)
                group.start_soon(pumps.to_owner, f"{SEND}{answer.headers[SESSION]}")
                group.start_soon(pumps.watch, registry)
                try:
                    yield theirs
                finally:
                    group.cancel_scope.cancel()
                    writer.transport.abort()
    finally:
        theirs.close()
        ours.close()


@dataclass
class _Pumps:
    """Each ends the connection when it cannot go on. The session takes that as the end of its process."""

    hops: HopClient
    owner: Replica
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def from_owner(self, answer: httpx2.Response) -> None:
        import httpx2

        try:
            with suppress(httpx2.TransportError, OSError):
                async for piece in answer.aiter_raw():
                    self.writer.write(piece)
                    await self.writer.drain()
        finally:
            self.writer.close()

    async def to_owner(self, path: str) -> None:
        with suppress(ToolError, OSError):
            while piece := await self.reader.read(CHUNK_BYTES):
                async with self.hops.send(self.owner, "POST", path, headers={}, body=piece) as answer:
                    if answer.status_code != 200:
                        break
                    await answer.aread()
        self.writer.close()

    async def watch(self, registry: ReplicaRegistry) -> None:
        # A stopped process keeps its connections: only its lease says that it is gone.
        await registry.until_gone(self.owner)
        self.writer.close()


async def _refusal(answer: httpx2.Response, owner: Replica) -> Exception:
    status = answer.status_code
    if status == NOT_OWNER:
        return NotOwner()
    if status not in (OTHER_ENTRY, CANNOT_START):
        # Of an earlier version, or no replica of ours any more.
        return Refused(f"the replica {owner.name} answers with HTTP status {status}")
    said: dict[str, str] = json.loads(await answer.aread())
    return Refused(said["why"]) if status == OTHER_ENTRY else StartFailure(ReasonCode(said["reason_code"]), said["why"])
