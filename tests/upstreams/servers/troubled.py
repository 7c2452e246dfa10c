"""A handshake-era server with one trouble, named by its argument. Standard library only.

crash: it answers its greeting and ends. no-list: it cannot list. large, deep: one tool has such a schema.
tasks: one tool can only be called as a task. twice: one tool is listed twice, each time another.
hidden: a value of a tool hides a character.
"""

from __future__ import annotations

import json
import sys
from typing import Any

MODE = sys.argv[1]
FINE = {"name": "fine", "inputSchema": {"type": "object"}}


def tools() -> list[dict[str, Any]]:
    if MODE == "large":
        return [FINE, {"name": "large", "inputSchema": {"type": "object", "description": "x" * 300_000}}]
    if MODE == "hidden":
        hides = {"type": "object", "properties": {"x": {"enum": ["a\u200bb"]}}}
        return [FINE, {**FINE, "name": "hidden", "inputSchema": hides}]
    if MODE == "twice":
        return [FINE, {**FINE, "name": "twice"}, {**FINE, "name": "twice", "description": "another"}]
    if MODE == "tasks":
        return [FINE, {**FINE, "name": "task", "execution": {"taskSupport": "required"}}]
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"p": schema}}
    return [FINE, {"name": "deep", "inputSchema": schema}]


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            return {
                "result": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "troubled", "version": "1"},
                }
            }
        case "tools/list" if MODE in ("large", "deep", "tasks", "twice", "hidden"):
            return {"result": {"tools": tools()}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": "fine"}]}}
        case _:
            return {"error": {"code": -32601, "message": "there is no such thing here"}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        if MODE == "crash":
            print("last words", file=sys.stderr, flush=True)
            sys.exit(3)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer_to(message)}), flush=True)
