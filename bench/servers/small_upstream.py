"""A stdio server with twenty tools and no libraries, so that fifty of them weigh next to nothing.

Speaks the handshake revisions only. Arguments: its name, and how many tools if not twenty.
"""

from __future__ import annotations

import json
import sys
from typing import Any

TOOL_COUNT = 20


def tool(name: str, number: int) -> dict[str, Any]:
    return {
        "name": f"{name}_task_{number}",
        "description": f"Task {number} of the server {name}: takes a title and a few options, gives back the title.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "What to give back"},
                "count": {"type": "integer", "minimum": 0},
                "labels": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["title"],
        },
    }


def answer(method: str, params: dict[str, Any], name: str, count: int) -> dict[str, Any] | None:
    """The result of a request, or None for a method we do not have."""
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": name, "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [tool(name, number) for number in range(count)]}
        case "tools/call":
            return {"content": [{"type": "text", "text": str(params["arguments"].get("title", ""))}]}
        case _:
            return None


def main(name: str, count: int = TOOL_COUNT) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params") or {}, name, count)
        outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "not found"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
