"""A server whose definitions are in a file, read at every list: `python changing.py FILE LOG` over stdio, in the
handshake era and of the standard library only, `python changing.py http PORT FILE LOG` over HTTP, of the SDK.

FILE holds {"tools": [...]} and maybe instructions (over HTTP those of its start count), over stdio also prompts and
templates. A call of `announce` says that the lists have changed; every call's name goes into LOG, and what prompts and
reads are asked for.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FILE, LOG = Path(sys.argv[-2]), Path(sys.argv[-1])


def definitions(kind: str = "tools") -> list[dict[str, Any]]:
    return json.loads(FILE.read_text()).get(kind, [])


def words() -> dict[str, str]:
    instructions = json.loads(FILE.read_text()).get("instructions", "")
    return {"instructions": instructions} if instructions else {}


def note(name: str) -> None:
    with LOG.open("a") as log:
        log.write(f"{name}\n")


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def over_stdio() -> None:
    answer: dict[str, Any]
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        params: dict[str, Any] = message.get("params") or {}
        match message["method"]:
            case "initialize":
                server = {"name": "changing", "version": "1"}
                version = params["protocolVersion"]
                tells = {"listChanged": True}
                capabilities = {"tools": tells, "prompts": tells, "resources": tells, "completions": {}}
                answer = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": server}
                answer |= words()
            case "tools/list":
                answer = {"tools": definitions()}
            case "tools/call":
                note(params["name"])
                if params["name"] == "announce":
                    for kind in ("tools", "prompts", "resources"):
                        send(method=f"notifications/{kind}/list_changed")
                answer = {"content": [{"type": "text", "text": f"{params['name']} ran"}]}
            case "prompts/list":
                answer = {"prompts": definitions("prompts")}
            case "resources/list":
                answer = {"resources": []}
            case "resources/templates/list":
                answer = {"resourceTemplates": definitions("templates")}
            case "prompts/get":
                note(f"prompt {params['name']}")
                answer = {"messages": [{"role": "user", "content": {"type": "text", "text": "words"}}]}
            case "resources/read":
                note(f"read {params['uri']}")
                answer = {"contents": [{"uri": params["uri"], "text": "words"}]}
            case "completion/complete":
                note("completion")
                answer = {"completion": {"values": ["v"]}}
            case "ping":
                answer = {}
            case _:
                send(id=message["id"], error={"code": -32601, "message": "Method not found"})
                continue
        send(id=message["id"], result=answer)


def over_http(port: int) -> None:
    import warnings

    warnings.simplefilter("ignore")
    import mcp_types as types
    import uvicorn
    from mcp.server.lowlevel import Server
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
    from mcp.shared.subscriptions import ToolsListChanged
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    bus = InMemorySubscriptionBus()

    async def list_tools(ctx: Any, params: Any) -> Any:
        return {"tools": definitions(), "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        note(params.name)
        if params.name == "announce":
            await bus.publish(ToolsListChanged())
            if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                await ctx.session.send_tool_list_changed()
        return types.CallToolResult(content=[types.TextContent(type="text", text=f"{params.name} ran")])

    server: Any = Server(
        "changing",
        version="1",
        instructions=words().get("instructions"),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(bus),
    )
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    if sys.argv[1] == "http":
        over_http(int(sys.argv[2]))
    else:
        over_stdio()
