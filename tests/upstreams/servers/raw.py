"""A handshake-era server without any library, which misbehaves as its first argument says.

`python raw.py MODE [LOG]`. Standard library only, so that it starts fast and can break every rule of the wire.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else "plain"
WIRE = threading.Lock()
LOG = Path(sys.argv[2]) if len(sys.argv) > 2 else None


INPUT = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "maximum": 16},
        "unit": {"enum": ["C", "F"]},
    },
    "required": ["city"],
    "additionalProperties": False,
}
LOST = {"type": "object", "properties": {"city": {"$ref": "#/$defs/nowhere"}}}
OUTPUT = {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]}


def note(what: str) -> None:
    if LOG is not None:
        with LOG.open("a") as file:
            file.write(f"{what}\n")


def send(message: dict[str, Any]) -> None:
    with WIRE:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def answer(request: dict[str, Any], result: Any) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def flood() -> None:
    """A thousand notices a second."""
    while True:
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        time.sleep(0.001)


def tools_page(request: dict[str, Any]) -> dict[str, Any]:
    def named(*names: str) -> list[dict[str, Any]]:
        return [{"name": name, "inputSchema": {"type": "object"}} for name in names]

    cursor = request.get("params", {}).get("cursor")
    match MODE:
        case "pages":
            step = int(cursor or 0)
            return {"tools": named(f"tool_{step}"), **({"nextCursor": str(step + 1)} if step < 2 else {})}
        case "endless":
            return {"tools": named(f"tool_{cursor}"), "nextCursor": "again"}
        case "outputs":
            (measure,) = named("measure")
            return {"tools": [{**measure, "outputSchema": OUTPUT}]}
        case "inputs":
            forecast, lost = named("forecast", "lost")
            return {"tools": [{**forecast, "inputSchema": INPUT}, {**lost, "inputSchema": LOST}]}
        case "unruly":
            return {"tools": named("ping", "twice", "drip", "string_id")}
        case "hidden":
            return {"tools": named("hidden", "refused")}
        case "heavy":
            step = int(cursor or 0)
            (tool,) = named(f"tool_{step}")
            return {"tools": [{**tool, "_meta": {"pad": "x" * 3_000_000}}], "nextCursor": str(step + 1)}
        case "broken-tools":
            good = named("fine")
            return {"tools": [*good, 7, {"name": "schemaless"}, {"name": "x", "inputSchema": {"type": "array"}}]}
        case _:
            return {"tools": named("ping", "big", "broken", "odd", "slow", "leave")}


def call(request: dict[str, Any]) -> None:
    name = request["params"]["name"]
    note(name)
    match name:
        case "big":
            size = int(request["params"]["arguments"]["bytes"])
            sys.stdout.write(f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{{"content":[],"pad":"')
            for _ in range(size // 65536):
                sys.stdout.write("x" * 65536)
            sys.stdout.write('"}}\n')
            sys.stdout.flush()
        case "broken":
            sys.stdout.write(f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{{"content":[}}}}\n')
            sys.stdout.flush()
        case "odd":
            answer(request, {"content": [{"type": "hologram", "depth": 3}, {"type": "text", "text": "\ud83d half"}]})
        case "forecast" | "lost":
            answer(request, {"content": [{"type": "text", "text": json.dumps(request["params"]["arguments"])}]})
        case "hidden":
            block = {"type": "text", "text": "\x1b[2Jfine\r\nok\u202e"}
            answer(request, {"content": [block], "structuredContent": {"say": ["\U000e0041"]}})
        case "refused":
            send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "no\u200b"}})
        case "measure":
            asked = request["params"]["arguments"]
            content = [{"type": "text", "text": "measured"}]
            fails = {"isError": True} if asked.get("fails") else {}
            answer(request, {"content": content, "structuredContent": {"value": asked["value"]}, **fails})
        case "twice":
            answer(request, {"content": [{"type": "text", "text": "first"}]})
            answer(request, {"content": [{"type": "text", "text": "second"}]})
            answer({"id": 987654}, {"content": [{"type": "text", "text": "nobody asked"}]})
        case "string_id":
            answer({"id": str(request["id"])}, {"content": [{"type": "text", "text": "same id"}]})
        case "drip":
            # A byte now and then, and never an end.
            while True:
                sys.stdout.write(" ")
                sys.stdout.flush()
                time.sleep(0.01)
        case "slow":
            time.sleep(float(request["params"]["arguments"]["s"]))
            answer(request, {"content": [{"type": "text", "text": "slept"}]})
        case "leave":
            # A child that outlives its parent and keeps the pipes open.
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            os._exit(3)
        case "ping" if MODE == "foreign-word":
            answer(request, {"content": [{"type": "text", "text": "pong"}], "resultType": "input_required"})
        case _:
            answer(request, {"content": [{"type": "text", "text": "pong"}]})


def main() -> None:
    note(f"start {os.getpid()}")
    if MODE == "exit":
        print("cannot find my configuration", file=sys.stderr)
        sys.exit(4)
    if MODE == "hang":
        time.sleep(3600)
    if MODE == "stubborn":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "garbage":
        print("Welcome to the server!\n{not json\n[1,2]\n" + '{"jsonrpc":"2.0"}')
        for _ in range(200):
            sys.stderr.write("noise " * 2000 + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                info = {"name": "raw", "version": "1"}
                asked = request["params"]["protocolVersion"]
                able: dict[str, Any] = {"tools": {}}
                if MODE == "logs":
                    able["logging"] = {}
                answer(request, {"protocolVersion": asked, "capabilities": able, "serverInfo": info})
            case "logging/setLevel" if MODE == "logs":
                note(f"level {request['params']['level']}")
                answer(request, {})
            case "notifications/initialized":
                if MODE == "flood":
                    threading.Thread(target=flood, daemon=True).start()
                if MODE == "asks":
                    send({"jsonrpc": "2.0", "id": "q1", "method": "roots/list"})
            case "tools/list":
                note("list")
                answer(request, tools_page(request))
            case "tools/call":
                call(request)
            case "notifications/cancelled":
                note("cancelled")
            case None:
                note(f"answer {json.dumps(request, sort_keys=True)}")
            case _ if "id" in request:
                error = {"code": -32601, "message": "Method not found"}
                send({"jsonrpc": "2.0", "id": request["id"], "error": error})
            case _:
                pass
    if MODE == "stubborn":
        time.sleep(3600)


main()
