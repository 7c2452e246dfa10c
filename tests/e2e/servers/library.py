"""An MCP server over stdio that offers resources, without an SDK, so that it can misbehave on purpose.

Usage: library.py [FAULT [LOG]]. Handshake era. Each start, list and read is a line in LOG. FAULT is one of
  pages              three pages of resources
  many               a hundred pages of a hundred resources
  cycle              each page's cursor leads back to the first
  endless            always one more page
  hangs-in-lists     leaves the second page of every list unanswered
  hangs-in-reads     leaves every read unanswered
  crashes-in-lists   ends with code 4 at the second page
  crashes-in-reads   ends with code 5 at every read
  crashes-once       ends with code 5 at the first read of LOG's life
  odd                lists what are no resources, and answers reads without contents
  none               declares no resources, and has none
  undeclared         answers the methods, but has not declared them
  templates          has templates only; the list of resources is an unknown method
  refuses            answers every list with an error
"""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
import time
import zlib
from pathlib import Path
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
LOG = Path(sys.argv[2]) if len(sys.argv) > 2 else None

RESOURCES: list[dict[str, Any]] = [
    {"uri": "lib://text", "name": "A text", "mimeType": "text/plain"},
    {"uri": "lib://image", "name": "A picture", "mimeType": "image/png"},
    {"uri": "lib://blob.dat", "name": "Some bytes"},
    {"uri": "lib://several", "name": "Two in one"},
    {"uri": "lib://evil", "name": "x\nlibrary\tlib://forged\tForged\ttext/plain"},
]
TEMPLATES: list[dict[str, Any]] = [{"uriTemplate": "lib://shelf/{number}", "name": "A shelf", "mimeType": "text/plain"}]
BYTES = bytes(range(256)) * 4


def png(width: int, height: int) -> bytes:
    """A red picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff\0\0" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def note(what: str) -> None:
    if LOG is not None:
        with LOG.open("a") as file:
            file.write(f"{what}\n")


def noted(what: str) -> int:
    return LOG.read_text().splitlines().count(what) if LOG is not None and LOG.exists() else 0


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def named(*numbers: int) -> list[dict[str, Any]]:
    return [{"uri": f"lib://{number}", "name": f"n{number}"} for number in numbers]


def page(cursor: str | None) -> dict[str, Any] | None:
    """One page of `resources/list`; None leaves the request unanswered."""
    step = int(cursor or 0)
    match FAULT:
        case "pages":
            return {"resources": named(step), **({"nextCursor": str(step + 1)} if step < 2 else {})}
        case "many":
            numbers = range(step * 100, step * 100 + 100)
            return {"resources": named(*numbers), **({"nextCursor": str(step + 1)} if step < 99 else {})}
        case "cycle":
            return {"resources": named(step), "nextCursor": str((step + 1) % 2)}
        case "endless":
            return {"resources": named(step), "nextCursor": str(step + 1)}
        case "hangs-in-lists" if step:
            return None
        case "crashes-in-lists" if step:
            os._exit(4)
        case "hangs-in-lists" | "crashes-in-lists":
            return {"resources": named(0), "nextCursor": "1"}
        case "odd":
            return {"resources": [7, {"name": "no uri"}, {"uri": ["x"]}, *named(0)]}
        case _:
            return {"resources": RESOURCES}


def contents(uri: str) -> list[dict[str, Any]] | None:
    """What is in a resource; None if there is no such one."""

    def blob(data: bytes) -> str:
        return base64.b64encode(data).decode()

    if uri.startswith("lib://shelf/"):
        return [{"uri": uri, "mimeType": "text/plain", "text": f"books of shelf {uri.rsplit('/', 1)[1]}"}]
    if uri.startswith("lib://large/"):
        return [{"uri": uri, "mimeType": "text/plain", "text": "x" * int(uri.rsplit("/", 1)[1])}]
    if uri.startswith("lib://nap/"):
        time.sleep(float(uri.rsplit("/", 1)[1]))
        return [{"uri": uri, "text": "rested"}]
    match uri:
        case "lib://text":
            return [{"uri": uri, "mimeType": "text/plain", "text": "Grüße from the library\n"}]
        case "lib://image":
            return [{"uri": uri, "mimeType": "text/html", "blob": blob(png(3, 2))}]
        case "lib://blob.dat":
            return [{"uri": uri, "blob": blob(BYTES)}]
        case "lib://several":
            return [
                {"uri": "lib://several/1", "mimeType": "text/csv", "text": "a,b\n"},
                {"uri": "lib://several/2", "blob": blob(png(1, 1))},
            ]
        case _:
            return None


def read(uri: str) -> dict[str, Any] | None:
    """The answer's `result` or `error` member."""
    if FAULT == "hangs-in-reads":
        return None
    if FAULT == "crashes-in-reads" or (FAULT == "crashes-once" and noted("read") == 1):
        print("library: on fire", file=sys.stderr, flush=True)
        os._exit(5)
    if FAULT == "odd":
        return {"result": {"contents": "none"}}
    found = contents(uri)
    if found is None:
        return {"error": {"code": -32002, "message": f"no such resource: {uri}", "data": {"uri": uri}}}
    return {"result": {"contents": found}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            capabilities: dict[str, Any] = (
                {"tools": {}} if FAULT in ("none", "undeclared") else {"tools": {}, "resources": {}}
            )
            me = {"name": "library", "version": "1"}
            return {
                "result": {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": me}
            }
        case "tools/list":
            return {"result": {"tools": [{"name": "ping", "inputSchema": {"type": "object"}}]}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": "pong"}]}}
        case "resources/list" if FAULT == "refuses":
            return {"error": {"code": -32603, "message": "the catalogue\nburnt"}}
        case "resources/list" if FAULT not in ("none", "templates"):
            note("list")
            found = page(params.get("cursor"))
            return None if found is None else {"result": found}
        case "resources/templates/list" if FAULT in ("", "templates"):
            return {"result": {"resourceTemplates": TEMPLATES}}
        case "resources/read" if FAULT != "none":
            note("read")
            return read(params["uri"])
        case _:
            return {"error": {"code": -32601, "message": f"method not found: {method}"}}


def main() -> None:
    note("start")
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if message.get("method") == "notifications/cancelled":
            note("cancelled")
        if "id" in message and "method" in message:
            reply = answer(message["method"], message.get("params") or {})
            if reply is not None:
                send({"id": message["id"], **reply})


if __name__ == "__main__":
    main()
