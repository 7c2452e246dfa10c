"""A small MCP server over stdio, of the standard library alone: `server.py NAME TOOL...`, or `server.py --hang`.

Each tool takes a text and returns it with the name of the server. With `--hang` it reads and never answers.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main(words: list[str]) -> None:
    name, *tools = words
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and name != "--hang":
            answer = {"jsonrpc": "2.0", "id": message["id"], **_answer(message, name, tools)}
            print(json.dumps(answer), flush=True)  # noqa: T201


def _answer(message: dict[str, Any], name: str, tools: list[str]) -> dict[str, Any]:
    parameters: dict[str, Any] = message.get("params", {})
    match message["method"]:
        case "initialize":
            info = {"name": name, "version": "1.0.0"}
            version = parameters["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": [_tool(tool) for tool in tools]}}
        case "tools/call":
            text = f"{name}: {parameters['arguments'].get('text', 'nothing')}"
            return {"result": {"content": [{"type": "text", "text": text}]}}
        case "ping":
            return {"result": {}}
        case method:
            return {"error": {"code": -32601, "message": f"no method {method}"}}


def _tool(name: str) -> dict[str, Any]:
    description = name.replace("_", " ").capitalize() + "."
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    reads = name.startswith(("list_", "search_", "get_"))
    return {"name": name, "description": description, "inputSchema": schema, "annotations": {"readOnlyHint": reads}}


if __name__ == "__main__":
    main(sys.argv[1:])
