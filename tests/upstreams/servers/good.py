"""A server of the SDK, in both eras: `python good.py [LOG]` over stdio, `python good.py http PORT [LOG]` over HTTP.

Every call of `mark` appends a line to LOG, so that tests can count effects.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    # Importing the SDK takes a tenth longer with it, and tests start this hundreds of times.
    gc.disable()

import os
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
EXTRA: list[str] = []


def tool(name: str, **members: Any) -> types.Tool:
    return types.Tool.model_validate({"name": name, "inputSchema": {"type": "object"}, **members})


TOOLS = [
    tool(
        "echo",
        title="Echo",
        description="Says it again.",
        inputSchema={
            "type": "object",
            "properties": {"text": {"type": "string"}, "region": {"type": "string", "x-mcp-header": "Region"}},
        },
        annotations={"readOnlyHint": True},
        _meta={"vendor/key": [1, None]},
        icons=[{"src": "https://example.org/i.png"}],
    ),
    tool("everything"),
    tool("work"),
    tool("mark"),
    tool("die"),
    tool("hang"),
    tool("refuse"),
    tool("seen"),
    tool("grow"),
]


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[*TOOLS, *(tool(name) for name in EXTRA)])


def text(value: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
    arguments = params.arguments or {}
    log = Path(sys.argv[-1]) if len(sys.argv) > 1 and sys.argv[-1].startswith("/") else None
    match params.name:
        case "echo":
            return text(arguments.get("text", ""))
        case "mark" | "die" | "hang":
            if log is not None:
                with log.open("a") as file:
                    file.write(f"{params.name}\n")
            if params.name == "die":
                print("last words of die", file=sys.stderr, flush=True)
                os._exit(7)
            if params.name == "hang":
                try:
                    await anyio.sleep(3600)
                except anyio.get_cancelled_exc_class():
                    if log is not None:
                        with log.open("a") as file:
                            file.write("cancelled\n")
                    raise
            return text("marked")
        case "everything":
            return {
                "content": [
                    {"type": "text", "text": "t", "annotations": {"priority": 0.5}, "_meta": {"b": None, "c": 1}},
                    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                    {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                    {"type": "resource_link", "uri": "x://y", "name": "y"},
                    {"type": "resource", "resource": {"uri": "x://z", "text": "zz"}},
                ],
                "structuredContent": {"none": None, "big": 123456789012345678901234567890, "list": [1, 2.5]},
                "_meta": {"vendor/answer": 42, "io.modelcontextprotocol/serverInfo": {"name": "liar", "version": "0"}},
                "resultType": "complete",
            }
        case "work":
            for step in range(int(arguments.get("steps", 3))):
                await ctx.session.report_progress(step + 1, 3, f"step {step + 1}")
                await anyio.sleep(float(arguments.get("pause_s", 0.02)))
            return text("worked")
        case "refuse":
            from mcp.shared.exceptions import MCPError

            raise MCPError(code=-32602, message="no such thing", data={"asked": arguments})
        case "seen":
            meta: dict[str, Any] = ctx.meta or {}
            era = "stateless" if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else "handshake"
            return types.CallToolResult(
                content=[], structured_content={"era": era, "meta": dict(meta), "env": sorted(os.environ)}
            )
        case "grow":
            EXTRA.append(f"extra_{len(EXTRA)}")
            await BUS.publish(ToolsListChanged())
            if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                await ctx.session.send_tool_list_changed()
            return text("grown")
        case _:
            raise ValueError(params.name)


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    step = int(params.cursor or 0) if params is not None else 0
    found = types.Resource(uri=f"good://{step}", name=f"n{step}", mime_type="text/plain", size=1, _meta={"v": [1]})
    return types.ListResourcesResult(resources=[found], next_cursor=str(step + 1) if step < 2 else None)


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    found = types.ResourceTemplate(uri_template="good://large/{megabytes}", name="large")
    return types.ListResourceTemplatesResult(resource_templates=[found])


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    from mcp.shared.exceptions import MCPError

    head, _, tail = str(params.uri).rpartition("/")
    if head == "good://large":
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, text="x" * (int(tail) * 1_000_000))]
        )
    if head == "good:/" and tail in ("0", "1", "ü"):
        era = "stateless" if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else "handshake"
        meta: dict[str, Any] = ctx.meta or {}
        seen = {name: value for name, value in meta.items() if "/" not in name}
        content = types.TextResourceContents(uri=params.uri, text=era, _meta={"seen": seen})
        return types.ReadResourceResult(contents=[content])
    raise MCPError(code=-32602, message=f"Unknown resource: {params.uri}")


SERVER: Server[Any] = Server(
    "good",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscriptions_listen=ListenHandler(BUS),
)


async def over_stdio() -> None:
    async with stdio_server() as (read, write):
        await SERVER.run(read, write, SERVER.create_initialization_options())


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "http":
        import uvicorn

        uvicorn.run(SERVER.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
    else:
        anyio.run(over_stdio)
