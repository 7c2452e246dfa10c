"""A handshake-era server without any library whose texts hold halves of surrogate pairs, as JSON's escapes can."""

from __future__ import annotations

import json
import sys
from typing import Any

HALF = "cut \ud83d emoji"
TEXT = {"type": "text", "text": HALF}
ANSWERS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "logging": {}, "resources": {}, "prompts": {}, "completions": {}},
        "serverInfo": {"name": "halves", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "say", "description": HALF, "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [TEXT]},
    "resources/list": {
        "resources": [
            {"uri": "half://one", "name": "one", "description": HALF},
            {"uri": "half://broken", "name": "broken"},
        ]
    },
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "half://{x}", "name": "any", "title": HALF}]},
    "resources/read": {"contents": [{"uri": "half://one", "text": HALF, "_meta": {HALF: 1}}]},
    "prompts/list": {"prompts": [{"name": "greet", "description": HALF}]},
    "prompts/get": {"description": HALF, "messages": [{"role": "user", "content": TEXT}]},
    "completion/complete": {"completion": {"values": [HALF]}},
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    params = request.get("params", {})
    if "half://broken" in (params.get("uri"), params.get("arguments", {}).get("uri")):
        return {"error": {"code": -32000, "message": HALF, "data": {HALF: HALF}}}
    result = ANSWERS.get(request["method"])
    return {"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown"}}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        if request["method"] == "tools/call":
            send(method="notifications/message", params={"level": "error", "data": HALF})
            token = request["params"].get("_meta", {}).get("progressToken")
            if token is not None:
                send(method="notifications/progress", params={"progressToken": token, "progress": 1, "message": HALF})
        send(id=request["id"], **answer(request))
