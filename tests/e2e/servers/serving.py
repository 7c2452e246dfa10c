"""How a test server serves: over stdio, or on a free port whose URL it prints; in both eras or in one."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from tests.conformance.fixture.one_era import HANDSHAKE, STATELESS, one_era

_OTHER_OPENING = {"legacy": "server/discover", "2026-07-28": "initialize"}
_STDIO = {"legacy": HANDSHAKE, "2026-07-28": STATELESS}


def serve(server: Server[Any], era: str, *, over_http: bool) -> None:
    """Until ended. `era` is all that it speaks: legacy, 2026-07-28 or both."""

    async def of_one_era(
        ctx: ServerRequestContext[Any, Any], call_next: Callable[[ServerRequestContext[Any, Any]], Awaitable[Any]]
    ) -> Any:
        if ctx.method == _OTHER_OPENING.get(era):
            raise MCPError(code=types.METHOD_NOT_FOUND, message="Method not found")
        return await call_next(ctx)

    server.middleware.append(of_one_era)
    _over_http(server) if over_http else anyio.run(_over_stdio, server, era)


async def _over_stdio(server: Server[Any], era: str) -> None:
    async with one_era(_STDIO[era]) if era in _STDIO else stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _over_http(server: Server[Any]) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
    anyio.run(uvicorn.Server(config).serve, [listener])
