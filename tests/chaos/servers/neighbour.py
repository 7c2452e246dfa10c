"""A handshake-era server of the standard library that is bad in the one way that KIND names.

`neighbour.py KIND [MARK]`; MARK is in the command line of all that it starts. It burns no more of the machine than its
badness needs: floods come in portions with a sleep between them.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

KIND = sys.argv[1]
WIRE = threading.Lock()
MIB = 1024 * 1024
PER_S = 1000
PORTION = 20
"""1,000 notices a second, as fifty portions of twenty."""
LISTS = itertools.count(1)


def write(data: bytes) -> None:
    with WIRE:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def framed(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def send(message: dict[str, Any]) -> None:
    write(framed(message))


def text(value: str, **members: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], **members}


def pour(message: dict[str, Any]) -> None:
    """A flood of one message until the end."""
    portion = framed(message) * PORTION
    while True:
        write(portion)
        time.sleep(PORTION / PER_S)


def log_message(value: str) -> dict[str, Any]:
    return {"method": "notifications/message", "params": {"level": "error", "logger": "flood", "data": value}}


def pour_stderr() -> None:
    noise = b"noise " * 2000 + b"\n"
    while True:
        os.write(2, noise * 5)
        time.sleep(0.02)


def pour_junk() -> None:
    while True:
        write(b"Server v1 ready\n\x00\xff\xfe\x80\n[1,2]\n{half\n" + b"\xf0" * 200 + b"\n")
        time.sleep(0.02)


def change() -> None:
    while True:
        send({"method": "notifications/tools/list_changed"})
        time.sleep(0.2)


def questions() -> Iterator[dict[str, Any]]:
    form = {"type": "object", "properties": {"password": {"type": "string"}}}
    number = 0
    while True:
        number += 1
        asked = {"message": "Password?", "requestedSchema": form}
        yield {"id": f"e{number}", "method": "elicitation/create", "params": asked}
        yield {"id": f"s{number}", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 9}}
        yield {"id": f"r{number}", "method": "roots/list"}
        yield {"id": f"u{number}", "method": "no/such/thing"}


def ask(pause_s: float) -> None:
    for question in questions():
        send(question)
        time.sleep(pause_s)


def drip() -> None:
    while True:
        write(b" ")
        time.sleep(0.02)


BESIDE: dict[str, Any] = {
    "logs": lambda: pour(log_message("flooded")),
    "notices": lambda: pour({"method": "notifications/tools/list_changed"}),
    "stderr": pour_stderr,
    "junk": pour_junk,
    "changing": change,
    "asks": lambda: ask(0.02),
    # Questions without an end by one that reads no answer.
    "deaf": lambda: ask(0.001),
}


def tools(number: int) -> list[dict[str, Any]]:
    """What the list of this number holds."""
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    if KIND == "changing":
        more = {"name": f"t{number}", "inputSchema": {"type": "object", "description": f"now {number}"}}
        return [{**tool, "description": f"It is tool {number} now."}, more]
    if KIND == "lies":
        output = {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]}
        return [{**tool, "outputSchema": output}, {"name": "Bash", "inputSchema": 7}, {**tool, "name": "t\u200b"}]
    return [tool]


def huge(head: bytes, tail: bytes) -> None:
    """100 MB between the two."""
    piece = b"x" * MIB
    write(head)
    for _ in range(100):
        write(piece)
    write(tail)


def call(request_id: int, params: dict[str, Any]) -> None:
    def answer(result: Any) -> None:
        send({"id": request_id, "result": result})

    match KIND:
        case "hangs-in-calls" | "drip":
            pass
        case "crashes-in-calls":
            # A child that outlives it and keeps its pipes open.
            subprocess.Popen([sys.executable, "-ISc", "import time; time.sleep(600)", *sys.argv[2:]])
            os._exit(3)
        case "broken-json":
            write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[}}\n' % request_id)
        case "wrong-ids":
            ids: tuple[Any, ...] = (request_id + 10**6, -request_id, str(request_id + 1), None, [], 1.5)
            for wrong in ids:
                send({"id": wrong, "result": text("forged")})
        case "lies":
            kinds = [{"type": "hologram"}, {"type": "text", "text": 7}, {"type": "image", "data": 7}]
            answer({"content": kinds, "structuredContent": {"value": "no number"}, "_meta": {"progressToken": 1}})
        case "huge-result":
            huge(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request_id, b'"}]}}\n')
        case "huge-line":
            huge(b"", b"\n")
            answer(text("after it"))
        case "large-result":
            # Just below what is taken.
            answer(text("line of text\n" * (15 * MIB // 14)))
        case "progress":
            token = request_id  # which the Python SDK and we use as the token
            for number in range(10**9):
                portion = b"".join(
                    framed(
                        {
                            "method": "notifications/progress",
                            "params": {"progressToken": token, "progress": number * PORTION + step},
                        }
                    )
                    for step in range(PORTION)
                )
                write(portion)
                time.sleep(PORTION / PER_S)
        case "healthy":
            value: Any = params["arguments"].get("number")
            answer(text(f"healthy {value}", structuredContent={"number": value}))
        case _:
            answer(text("fine"))


def main() -> None:
    if KIND == "hangs-at-start":
        time.sleep(3600)
    if KIND == "crashes-at-start":
        sys.exit("cannot find my configuration")
    if KIND == "drip":
        threading.Thread(target=drip, daemon=True).start()
    for line in sys.stdin.buffer:
        message: dict[str, Any] = json.loads(line)
        request_id: Any = message.get("id")
        params: dict[str, Any] = message.get("params") or {}
        match message.get("method"):
            case "initialize":
                can = {"tools": {"listChanged": True}, "logging": {}}
                about = {"protocolVersion": params["protocolVersion"], "serverInfo": {"name": KIND, "version": "1"}}
                send({"id": request_id, "result": {**about, "capabilities": can}})
            case "tools/list":
                number = next(LISTS)
                send({"id": request_id, "result": {"tools": tools(number)}})
                if KIND == "crash-loop":
                    os._exit(5)
                if number == 1 and KIND in BESIDE:
                    threading.Thread(target=BESIDE[KIND], daemon=True).start()
                if KIND == "deaf":
                    time.sleep(3600)
            case "tools/call":
                call(message["id"], params)
            case "ping" | "logging/setLevel":
                send({"id": request_id, "result": {}})
            case None:
                pass
            case _ if request_id is not None:
                send({"id": request_id, "error": {"code": -32601, "message": "Method not found"}})
            case _:
                pass


main()
