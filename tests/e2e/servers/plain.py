"""A tiny MCP server over stdio without an SDK, so that it starts in milliseconds and can misbehave on purpose.

Usage: plain.py [FAULT]. Handshake era only; any other request gets "method not found". FAULT is one of
  hangs            never answers anything
  hangs-in-calls   lists its tools, then leaves every call unanswered
  crashes          ends at once, with code 3
  crashes-in-calls ends with code 4 as soon as a tool is called
  garbage          prints banners, half JSON, binary and very long lines around every frame
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Arguments = dict[str, Any]
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
HINTS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
GARBAGE = (
    b"Welcome to plain 1.0!\n",
    b'{"jsonrpc": "2.0", "id"\n',
    b"\x00\xff\xfe\n",
    b"x" * 1_000_000 + b"\n",
    b"[]\n\n",
)


def tool(name: str, description: str, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = (
        {"type": "object", "properties": properties, "required": list(properties)} if properties else EMPTY
    )
    return {"name": name, "description": description, "inputSchema": schema, "annotations": HINTS}


TOOLS = [
    tool("echo", "Give the text back.", text={"type": "string"}),
    tool("pid", "The number of this process."),
    tool("nap", "Answer after some seconds.", seconds={"type": "number"}),
    tool("refuse", "Answer with a JSON-RPC error."),
    tool("grow", "Add a tool named `grown` and say that the list changed."),
]


def send(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def print_garbage() -> None:
    for line in GARBAGE:
        sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def call(name: str, arguments: Arguments) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": ANSWERS[name](arguments)}]}


def nap(arguments: Arguments) -> str:
    time.sleep(arguments["seconds"])
    return "rested"


def grow(_: Arguments) -> str:
    TOOLS.append(tool("grown", "A tool that was not there at first."))
    send({"method": "notifications/tools/list_changed"})
    return "grown"


ANSWERS: dict[str, Callable[[Arguments], str]] = {
    "echo": lambda arguments: arguments["text"],
    "pid": lambda _: str(os.getpid()),
    "nap": nap,
    "grow": grow,
    "grown": lambda _: "I am new here",
}


def answer(method: str, params: dict[str, Any], fault: str) -> dict[str, Any] | None:
    """The answer's `result` or `error` member; None leaves the request unanswered."""
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        me = {"name": "plain", "version": "1.0.0"}
        return {
            "result": {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": me}
        }
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call":
        if fault == "hangs-in-calls":
            return None
        if fault == "crashes-in-calls":
            print("plain: told to crash", file=sys.stderr, flush=True)
            os._exit(4)
        if params["name"] == "refuse":
            return {"error": {"code": -32050, "message": "plain refuses", "data": {"why": ["asked", None]}}}
        return {"result": call(params["name"], params.get("arguments") or {})}
    return {"error": {"code": -32601, "message": f"method not found: {method}"}}


def main() -> None:
    fault = sys.argv[1] if len(sys.argv) > 1 else ""
    if fault == "crashes":
        print("plain: told to crash", file=sys.stderr, flush=True)
        os._exit(3)
    for line in sys.stdin.buffer:
        message: dict[str, Any] = json.loads(line)
        if fault == "hangs" or "id" not in message or "method" not in message:
            continue
        if fault == "garbage":
            print_garbage()
        reply = answer(message["method"], message.get("params") or {}, fault)
        if reply is not None:
            send({"id": message["id"], **reply})
            if fault == "garbage":
                print_garbage()


if __name__ == "__main__":
    main()
