"""A server of the SDK whose definitions are in a file, read at every list: `python changing.py FILE LOG` over stdio,
`python changing.py http PORT FILE LOG` over HTTP.

FILE holds {"tools": [...]}. A call of `announce` says that the list has changed; every call's name goes into LOG.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

warnings.simplefilter("ignore")
BUS = InMemorySubscriptionBus()
FILE, LOG = Path(sys.argv[-2]), Path(sys.argv[-1])


def definitions() -> dict[str, Any]:
    return json.loads(FILE.read_text())


def note(name: str) -> None:
    with LOG.open("a") as log:
        log.write(f"{name}\n")


async def list_tools(ctx: Any, params: Any) -> Any:
    return {
        "tools": definitions()["tools"],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "public",
    }


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    note(params.name)
    if params.name == "announce":
        await BUS.publish(ToolsListChanged())
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await ctx.session.send_tool_list_changed()
    return types.CallToolResult(content=[types.TextContent(type="text", text=f"{params.name} ran")])


SERVER: Any = Server(
    "changing",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=ListenHandler(BUS),
)


async def over_stdio() -> None:
    async with stdio_server() as (read, write):
        await SERVER.run(read, write, SERVER.create_initialization_options())


if __name__ == "__main__":
    if sys.argv[1] == "http":
        import uvicorn

        uvicorn.run(SERVER.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
    else:
        anyio.run(over_stdio)
