"""The least an SDK server can be: one echo tool on the lowlevel `Server`. Baseline of start, memory and calls.

Arguments: `stdio`, or a port to serve HTTP on; more are ignored, and tell one such server from another.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

ECHO = types.Tool(
    name="echo",
    description="Say the text again.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[ECHO])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = str((params.arguments or {}).get("text", ""))
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def schema_of(name: str) -> dict[str, Any] | None:
    return ECHO.input_schema if name == ECHO.name else None


server: Server[Any] = Server(
    "bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=schema_of
)


async def serve_stdio() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def serve_http(port: int) -> None:
    import uvicorn

    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        anyio.run(serve_stdio)
    else:
        serve_http(int(sys.argv[1]))
