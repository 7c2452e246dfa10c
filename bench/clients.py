"""Connections of the SDK's client to several servers at once. The SDK loads only when one is opened."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.wire import Era

if TYPE_CHECKING:
    from mcp import Client


@dataclass(frozen=True)
class OverSse:
    """A server that speaks the transport of 2024-11-05: events from a URL, messages to another."""

    url: str


Target = Sequence[str] | str | OverSse
"""A command to start over stdio, or where a server runs: its URL."""


@asynccontextmanager
async def connected(
    targets: Mapping[str, Target], era: Era, env: Mapping[str, str]
) -> AsyncGenerator[Mapping[str, Client]]:
    """A client per target, all open at the same time."""
    from mcp import Client, StdioServerParameters
    from mcp.client.sse import sse_client

    mode = "legacy" if era == "handshake" else "auto"
    async with AsyncExitStack() as stack:
        clients: dict[str, Client] = {}
        for name, target in targets.items():
            if isinstance(target, str):
                server = target
            elif isinstance(target, OverSse):
                server = sse_client(target.url)
            else:
                server = StdioServerParameters(command=target[0], args=list(target[1:]), env=dict(env))
            clients[name] = await stack.enter_async_context(Client(server, mode=mode))
        yield clients


async def tool_ending(client: Client, name: str) -> str:
    """The full name of the one tool whose name is or ends in `name`: proxies put prefixes before it."""
    tools = [tool.name for tool in (await client.list_tools()).tools]
    found = [tool for tool in tools if tool == name or tool.endswith(f"_{name}")]
    if len(found) != 1:
        raise LookupError(f"{found} of {tools} end in {name}")
    return found[0]
