"""A server of the standard library that says whose requests it gets: `python shared.py PIDS [roots | stateless]`.

It appends its process number to the file PIDS when it starts. Over stdio, one thread for each call.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

PIDS = Path(sys.argv[1])
KIND = sys.argv[2] if len(sys.argv) > 2 else ""
NAMES = ("echo", "pid", "slow", "cancelled", "crash", "change", "environment", "ask", "log", "folder", "odd", "stop")
TOOLS: list[dict[str, Any]] = [
    {
        "name": name,
        "title": "Tool\u200b of the shared server",
        "description": f"Does {name}.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "x-own": [1, 1.5, None]},
        "annotations": {"readOnlyHint": name in ("echo", "pid")},
    }
    for name in NAMES
]
_lock = threading.Lock()
_answers: dict[str, Any] = {}
_came = threading.Condition()
_cancelled: list[Any] = []


def send(**message: Any) -> None:
    with _lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def request(method: str, **params: Any) -> dict[str, Any]:
    """Ask the client, and wait for what it says."""
    name = f"q{time.monotonic_ns()}"
    send(id=name, method=method, params=params)
    with _came:
        _came.wait_for(lambda: name in _answers, timeout=30)
        return _answers[name]


def call(request_id: Any, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> None:
    text = str(arguments.get("text", ""))
    if name == "slow":
        for done in range(3):
            if (token := meta.get("progressToken")) is not None:
                send(method="notifications/progress", params={"progressToken": token, "progress": done + 1})
            time.sleep(0.2)
    elif name == "cancelled":
        until_s = time.monotonic() + 30
        while request_id not in _cancelled and time.monotonic() < until_s:
            time.sleep(0.01)
        PIDS.with_suffix(".cancelled").write_text(text)
        return
    elif name == "crash":
        print("the last words", file=sys.stderr, flush=True)
        os._exit(7)
    elif name == "change":
        send(method="notifications/tools/list_changed")
    elif name == "environment":
        text = os.environ.get("MY_SECRET", "")
    elif name == "ask":
        text = json.dumps(
            request("elicitation/create", message=text, requestedSchema={"type": "object", "properties": {}})
        )
    elif name == "log":
        send(method="notifications/message", params={"level": "warning", "data": text})
    elif name == "odd":
        send(id="q", method="elicitation/create", params={"message": text, "requestedSchema": {"type": "object"}})
        send(method="notifications/cancelled", params={"requestId": [1]})
        send(method="notifications/progress", params={"progressToken": {}, "progress": "much"})
        send(method="notifications/resources/updated", params={"uri": []})
        send(id=[2], method="elicitation/create", params={})
        send(id=999_999, result={})
    elif name == "stop":
        send(id=request_id, result={"content": []})
        os.kill(os.getpid(), signal.SIGSTOP)
    elif name == "folder":
        text = str(Path.cwd())
    text = text if name != "pid" else str(os.getpid())
    send(id=request_id, result={"content": [{"type": "text", "text": text}]})


def take(message: dict[str, Any]) -> None:
    request_id = message.get("id")
    params: dict[str, Any] = message.get("params") or {}
    if "method" not in message:
        with _came:
            _answers[message["id"]] = message.get("result") or {"error": message.get("error")}
            _came.notify_all()
        return
    match message["method"]:
        case "notifications/initialized" if KIND == "roots":
            threading.Thread(target=note_roots, daemon=True).start()
        case "notifications/cancelled":
            _cancelled.append(params.get("requestId"))
        case "initialize":
            tells: dict[str, Any] = {"tools": {"listChanged": True}, "logging": {}}
            server = {"name": "shared", "version": "1"}
            answer = {"protocolVersion": params["protocolVersion"], "capabilities": tells, "serverInfo": server}
            send(id=request_id, result=answer)
        case "server/discover" if KIND == "stateless":
            server = {"name": "shared", "version": "1"}
            told: dict[str, Any] = {"tools": {}}
            send(
                id=request_id, result={"capabilities": told, "supportedVersions": ["2026-07-28"], "serverInfo": server}
            )
        case "tools/list":
            send(id=request_id, result={"tools": TOOLS})
        case "tools/call":
            arguments: dict[str, Any] = params.get("arguments") or {}
            meta: dict[str, Any] = params.get("_meta") or {}
            about = (request_id, params["name"], arguments, meta)
            threading.Thread(target=call, args=about, daemon=True).start()
        case "ping" | "logging/setLevel":
            send(id=request_id, result={})
        case method:
            if request_id is not None:
                send(id=request_id, error={"code": -32601, "message": f"no {method}"})


def note_roots() -> None:
    with PIDS.with_suffix(".roots").open("a") as file:
        file.write(f"{os.getpid()} {json.dumps(request('roots/list'))}\n")


if __name__ == "__main__":
    with PIDS.open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    for line in sys.stdin:
        take(json.loads(line))
