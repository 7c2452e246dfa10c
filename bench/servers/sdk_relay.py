"""A plain SDK client behind a plain SDK server: what relaying costs when nobody has thought about it.

Arguments: `stdio COMMAND ARG...` relays a stdio server, `PORT URL` relays an HTTP server over HTTP.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


def relay(client: Client) -> Server[Any]:
    """A server that answers lists and calls by asking `client`."""

    async def list_tools(ctx: Any, params: Any) -> Any:
        return await client.list_tools()

    async def call_tool(ctx: Any, params: Any) -> Any:
        return await client.call_tool(params.name, params.arguments or {})

    return Server("relay", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio(command: str, arguments: list[str]) -> None:
    async with Client(StdioServerParameters(command=command, args=arguments)) as client:
        server = relay(client)
        await client.list_tools()
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


async def serve_http(port: int, url: str) -> None:
    import uvicorn

    async with Client(url) as client:
        await client.list_tools()
        app = relay(client).streamable_http_app()
        await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error")).serve()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        anyio.run(serve_stdio, sys.argv[2], sys.argv[3:])
    else:
        anyio.run(serve_http, int(sys.argv[1]), sys.argv[2])
