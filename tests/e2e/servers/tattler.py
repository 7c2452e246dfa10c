"""A tiny MCP server over stdio that tells everything it was given wherever something fails: it knows no secret.

`fails` answers with a JSON-RPC error that holds its environment, `refuses` with a tool's error, `crashes` prints the
environment to stderr and ends.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

TOOLS = ("fails", "crashes")
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    everything = dict(os.environ)
    if method == "initialize":
        me = {"name": "tattler", "version": "1.0.0"}
        return {
            "result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": me}
        }
    if method == "tools/list":
        return {"result": {"tools": [{"name": name, "inputSchema": EMPTY} for name in TOOLS]}}
    if method == "tools/call":
        if params["name"] == "crashes":
            print(f"crashed with {everything}", file=sys.stderr, flush=True)
            os._exit(3)
        return {"error": {"code": -32001, "message": f"failed with {everything}", "data": everything}}
    return {"error": {"code": -32601, "message": f"method not found: {method}"}}


def main() -> None:
    print(f"started with {dict(os.environ)}", file=sys.stderr, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            reply = {"jsonrpc": "2.0", "id": request["id"], **answer(request["method"], request.get("params") or {})}
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
