"""A handshake-era server that counts its own effects: `python counting.py FOLDER`. Standard library only.

`add` writes a line with its process number and the text into FOLDER/effects, and so does `hold`, which answers once
FOLDER/go is there. `read` only says the process number, `look` waits for FOLDER/go first. `slow` reports progress.
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
READING = ("read", "look", "slow")
TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": name in READING}}
    for name in ("add", "hold", *READING)
]
WIRE = threading.Lock()


def send(**message: Any) -> None:
    with WIRE:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def call(request: dict[str, Any]) -> None:
    params = request["params"]
    name = params["name"]
    if name in ("add", "hold"):
        with (FOLDER / "effects").open("a") as effects:
            effects.write(f"{os.getpid()} {params['arguments'].get('text', '')}\n")
    if name in ("hold", "look"):
        (FOLDER / "waiting").touch()
        while not (FOLDER / "go").exists():
            time.sleep(0.02)
    if name == "slow":
        for done in range(3):
            token = params["_meta"]["progressToken"]
            send(method="notifications/progress", params={"progressToken": token, "progress": done + 1})
            time.sleep(0.1)
    send(id=request["id"], result={"content": [{"type": "text", "text": str(os.getpid())}]})


for line in sys.stdin:
    request = json.loads(line)
    match request.get("method"):
        case "initialize":
            info = {"name": "counting", "version": "1"}
            version = request["params"]["protocolVersion"]
            result: dict[str, Any] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            send(id=request["id"], result=result)
        case "tools/list":
            send(id=request["id"], result={"tools": TOOLS})
        case "tools/call":
            threading.Thread(target=call, args=[request], daemon=True).start()
        case "ping":
            send(id=request["id"], result={})
        case _ if "id" in request:
            send(id=request["id"], error={"code": -32601, "message": "unknown"})
        case _:
            pass
