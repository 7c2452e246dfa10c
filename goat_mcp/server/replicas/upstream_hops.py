"""What other replicas ask of the upstream processes that this one owns: `upstreams.owners.tunnel` is the other end."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from goat_mcp.core.errors import ToolError
from goat_mcp.server.replicas.gate import HOP
from goat_mcp.server.replicas.this_replica import ThisReplica
from goat_mcp.state.redis.shared_state import SharedState
from goat_mcp.upstreams.faults import StartFailure
from goat_mcp.upstreams.owners.owned_process import OwnedProcess
from goat_mcp.upstreams.owners.owners import Owners, Replicas
from goat_mcp.upstreams.owners.process_key import key_in
from goat_mcp.upstreams.owners.tunnel import (
    CANNOT_START,
    CHUNK_BYTES,
    NOT_OWNER,
    OPEN,
    OTHER_ENTRY,
    PATH,
    SEND,
    SESSION,
    Refused,
)
from goat_mcp.web.hops.signature import Hop


@dataclass(eq=False)
class _Session:
    source: str
    writer: asyncio.StreamWriter


@dataclass
class UpstreamHops:
    """ASGI application, behind the gate that checks the signature."""

    owners: Owners
    _sessions: dict[str, _Session] = field(default_factory=dict[str, _Session])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hop: Hop = scope[HOP]
        if hop.path == OPEN:
            await self._open(hop, scope, receive, send)
        elif hop.path.startswith(SEND):
            await self._take(hop, scope, receive, send)
        else:
            await Response(status_code=404)(scope, receive, send)

    async def _open(self, hop: Hop, scope: Scope, receive: Receive, send: Send) -> None:
        asked: dict[str, Any] = json.loads((await receive())["body"])
        key = key_in(asked["key"])
        owned: OwnedProcess | None = None
        try:
            opening = self.owners.opening(key, asked)
            with suppress(ToolError):  # the shared state does not answer
                owned = await self.owners.take(key)
        except Refused as other:
            await JSONResponse({"why": str(other)}, OTHER_ENTRY)(scope, receive, send)
            return
        except StartFailure as failure:
            facts = {"why": failure.message, "reason_code": failure.reason_code}
            await JSONResponse(facts, CANNOT_START)(scope, receive, send)
            return
        if owned is None:
            await Response(status_code=NOT_OWNER)(scope, receive, send)
            return
        name = secrets.token_urlsafe(16)
        async with owned.joined(opening, int(asked["pid"])) as connection:
            reader, writer = await asyncio.open_connection(sock=connection, limit=CHUNK_BYTES)
            self._sessions[name] = _Session(hop.source, writer)
            try:
                await _stream(name, reader, receive, send)
            finally:
                del self._sessions[name]
                writer.transport.abort()

    async def _take(self, hop: Hop, scope: Scope, receive: Receive, send: Send) -> None:
        session = self._sessions.get(hop.path.removeprefix(SEND))
        if session is None or session.source != hop.source or session.writer.is_closing():
            await Response(status_code=404)(scope, receive, send)
            return
        session.writer.write((await receive())["body"])
        try:
            await session.writer.drain()
        except OSError:
            await Response(status_code=404)(scope, receive, send)
            return
        await Response(status_code=200)(scope, receive, send)


async def _stream(name: str, reader: asyncio.StreamReader, receive: Receive, send: Send) -> None:
    """What the process says, until it or the other replica ends."""
    headers = [(SESSION.encode(), name.encode()), (b"content-type", b"application/octet-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()

        group.start_soon(watch)
        while piece := await reader.read(CHUNK_BYTES):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        group.cancel_scope.cancel()


@asynccontextmanager
async def owning(owners: Owners, shared: SharedState, replica: ThisReplica) -> AsyncGenerator[None]:
    """Own processes of upstreams as one of several, while this replica is registered."""
    replica.apps[PATH] = UpstreamHops(owners)
    async with owners.running(Replicas(replica.registry, replica.hops, shared.connection)):
        yield
