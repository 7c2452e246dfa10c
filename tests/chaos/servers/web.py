"""Bad neighbours over HTTP, one per path, and `/healthy`: prints its port, then serves until stdin ends.

Everything but the call is as it should be, so that the badness is met by calls.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MIB = 1024 * 1024
PORTION = 20


def text(value: str) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": value}]}


class Neighbour(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        message: dict[str, Any] = json.loads(body)
        kind = self.path.strip("/")
        try:
            if kind == "hangs-at-start":
                time.sleep(3600)
            match message.get("method"):
                case "server/discover":
                    about = {"supportedVersions": ["2026-07-28"], "serverInfo": {"name": kind, "version": "1"}}
                    can: dict[str, Any] = {"tools": {}}
                    self._answer(message, {"resultType": "complete", **about, "capabilities": can, **LISTS_FOR_EVER})
                case "tools/list":
                    tools = [{"name": "t", "inputSchema": {"type": "object"}}]
                    self._answer(message, {"resultType": "complete", "tools": tools, **LISTS_FOR_EVER})
                case "tools/call":
                    self._call(kind, message)
                case _:
                    self.send_response(202)
                    self.send_header("content-length", "0")
                    self.end_headers()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _call(self, kind: str, message: dict[str, Any]) -> None:
        match kind:
            case "healthy":
                self._answer(message, text(f"healthy {message['params']['arguments'].get('number')}"))
            case "hangs-in-calls":
                time.sleep(5)
                self.close_connection = True
            case "drops":
                self.close_connection = True
            case "drip":
                self._head("application/json", 10_000)
                for _ in range(250):
                    self.wfile.write(b" ")
                    time.sleep(0.02)
                self.close_connection = True
            case "status-500":
                self.send_response(500)
                self.send_header("content-length", "0")
                self.end_headers()
            case "broken-json":
                self._body(b'{"jsonrpc":"2.0","id":')
            case "wrong-ids":
                self._body(json.dumps({"jsonrpc": "2.0", "id": 10**6, "result": text("forged")}).encode())
            case "huge-result":
                piece = b"x" * MIB
                self._head("application/json", 100 * MIB)
                self.wfile.write(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"')
                for _ in range(100):
                    self.wfile.write(piece)
                self.close_connection = True
            case _:  # notices
                self._head("text/event-stream", None)
                told = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "x"}}
                portion = (b"event: message\ndata: " + json.dumps(told).encode() + b"\n\n") * PORTION
                for _ in range(250):
                    self.wfile.write(portion)
                    time.sleep(PORTION / 1000)
                self.close_connection = True

    def _answer(self, message: dict[str, Any], result: dict[str, Any]) -> None:
        self._body(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    def _body(self, body: bytes) -> None:
        self._head("application/json", len(body))
        self.wfile.write(body)

    def _head(self, kind: str, length: int | None) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        if length is None:
            self.send_header("connection", "close")
        else:
            self.send_header("content-length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


LISTS_FOR_EVER = {"ttlMs": 0, "cacheScope": "public"}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def main() -> None:
    served = Server(("127.0.0.1", 0), Neighbour)
    print(served.server_address[1], flush=True)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


main()
