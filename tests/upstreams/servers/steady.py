"""A handshake-era server that says which process it is: `python steady.py FOLDER [TOOL]...`. Standard library only.

`pid` answers its process id, `wait` the same once FOLDER/go is there; FOLDER/waiting tells that it waits. Any other
TOOL answers its own name.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
TOOLS = ["pid", "wait", *sys.argv[2:]]
WIRE = threading.Lock()


def answer(request: dict[str, Any], result: Any) -> None:
    with WIRE:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
        sys.stdout.flush()


def call(request: dict[str, Any]) -> None:
    name = request["params"]["name"]
    if name == "wait":
        (FOLDER / "waiting").touch()
        while not (FOLDER / "go").exists():
            time.sleep(0.02)
    text = str(os.getpid()) if name in ("pid", "wait") else name
    answer(request, {"content": [{"type": "text", "text": text}]})


for line in sys.stdin:
    request = json.loads(line)
    match request.get("method"):
        case "initialize":
            version = request["params"]["protocolVersion"]
            info = {"name": "steady", "version": "1"}
            answer(request, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        case "tools/list":
            answer(request, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]})
        case "tools/call":
            threading.Thread(target=call, args=[request], daemon=True).start()
        case "ping":
            answer(request, {})
        case _ if "id" in request:
            error = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "unknown"}}
            with WIRE:
                sys.stdout.write(json.dumps(error) + "\n")
                sys.stdout.flush()
        case _:
            pass
