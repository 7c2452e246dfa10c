"""A server of the standard library alone: it reads, writes and connects to what it is asked to, and says what came."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any


def look(kind: str, what: str) -> str:
    try:
        if kind == "read":
            return Path(what).read_text()
        if kind == "write":
            Path(what).write_text("x")
            return "written"
        if kind == "connect":
            socket.create_connection(("127.0.0.1", int(what)), timeout=5).close()
            return "connected"
        return json.dumps(dict(os.environ))
    except OSError as problem:
        return type(problem).__name__


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        info = {"name": "curious", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        text = {"type": "string"}
        schema = {"type": "object", "properties": {"kind": text, "what": text}, "required": ["kind", "what"]}
        return {"tools": [{"name": "look", "inputSchema": schema}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": look(**params["arguments"])}]}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params") or {})
        failed = {"error": {"code": -32601, "message": "not here"}}
        body: dict[str, Any] = failed if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}), flush=True)
