"""A server of 2026-07-28 whose change stream takes a while to begin: `python late_stream.py SECONDS LOG`. Standard
library only. It has one tool until then, and another from the moment it begins, of which nobody is told.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

TAKES_S, LOG = float(sys.argv[1]), Path(sys.argv[2])
TOOLS = ["one"]
WIRE = threading.Lock()


def send(message: dict[str, Any]) -> None:
    with WIRE:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def begin(request: dict[str, Any]) -> None:
    """Tells of what changes from now on."""
    TOOLS.append("two")
    note("hears")
    meta = {"io.modelcontextprotocol/subscriptionId": request["id"]}
    params = {"notifications": request["params"]["notifications"], "_meta": meta}
    send({"method": "notifications/subscriptions/acknowledged", "params": params})


def note(what: str) -> None:
    with LOG.open("a") as log:
        log.write(f"{what}\n")


for line in sys.stdin:
    asked: dict[str, Any] = json.loads(line)
    complete = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    match asked.get("method"):
        case "server/discover":
            about = {"serverInfo": {"name": "late", "version": "1"}, "capabilities": {"tools": {"listChanged": True}}}
            send({"id": asked["id"], "result": {"supportedVersions": ["2026-07-28"], **about, **complete}})
        case "tools/list":
            note("list")
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            send({"id": asked["id"], "result": {"tools": tools, **complete}})
        case "subscriptions/listen":
            threading.Timer(TAKES_S, begin, [asked]).start()
        case _ if "id" in asked:
            send({"id": asked["id"], "error": {"code": -32601, "message": "Method not found"}})
        case _:
            pass
