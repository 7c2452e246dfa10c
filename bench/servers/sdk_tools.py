"""An SDK server with many tools, over stdio. What listing costs that nobody has prepared.

Arguments: its name, and how many tools.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from small_upstream import tool  # pyright: ignore  # beside this script


def server(name: str, count: int) -> Server[Any]:
    tools = [types.Tool.model_validate(tool(name, number)) for number in range(count)]  # pyright: ignore

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    return Server(name, version="1", on_list_tools=list_tools)


async def serve(name: str, count: int) -> None:
    async with stdio_server() as (read, write):
        made = server(name, count)
        await made.run(read, write, made.create_initialization_options())


if __name__ == "__main__":
    anyio.run(serve, sys.argv[1], int(sys.argv[2]))
