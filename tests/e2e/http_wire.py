"""HTTP by hand: requests no library would send, and what exactly came back."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.goat import TOKEN, HttpGoat
from tests.e2e.test_http_guard import GOOD, PING

TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Response:
    """`status` 0: the server closed without an answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC message, sent alone or as the last event of a stream."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            data = [
                line[5:] for line in self.body.decode().splitlines() if line.startswith("data:") and line[5:].strip()
            ]
            return json.loads(data[-1])
        return json.loads(self.body)


def place(goat: HttpGoat) -> tuple[str, int]:
    parts = urlsplit(goat.url)
    assert parts.hostname is not None and parts.port is not None
    return parts.hostname, parts.port


def connect(goat: HttpGoat, timeout_s: float = TIMEOUT_S) -> socket.socket:
    return socket.create_connection(place(goat), timeout=timeout_s)


def host_of(goat: HttpGoat) -> str:
    return urlsplit(goat.url).netloc


def head(
    goat: HttpGoat, changes: Mapping[str, str | None] | None = None, *, start: str = "POST /mcp HTTP/1.1"
) -> bytes:
    """A request's head, good but for what is changed. A header of None is left out."""
    headers = {"Host": host_of(goat), **GOOD, **(changes or {})}
    lines = [start, *(f"{name}: {value}" for name, value in headers.items() if value is not None)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def listed_with(goat: HttpGoat, *wanted: str) -> None:
    """Wait until these tools are in the list: those of a slow server miss the first one (LIF-2)."""
    ends_at_s = time.monotonic() + TIMEOUT_S
    while True:
        names = {tool["name"] for tool in exchange(goat).message["result"]["tools"]}
        if set(wanted) <= names:
            return
        assert time.monotonic() < ends_at_s, f"{sorted(set(wanted) - names)} are not listed"
        time.sleep(0.1)


def read_response(connection: socket.socket) -> Response:
    """Read to the end of the connection; the sender has asked for that."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    top, _, body = received.partition(b"\r\n\r\n")
    if not top:
        return Response(0, {}, b"")
    first, *lines = top.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = _unchunked(body)
    return Response(int(first.split()[1]), headers, body)


def _unchunked(body: bytes) -> bytes:
    whole = b""
    while body:
        size_text, _, body = body.partition(b"\r\n")
        size = int(size_text or b"0", 16)
        whole, body = whole + body[:size], body[size + 2 :]
        if not size:
            break
    return whole


def exchange(
    goat: HttpGoat,
    changes: Mapping[str, str | None] | None = None,
    body: Any = None,
    *,
    start: str = "POST /mcp HTTP/1.1",
    raw: bytes | None = None,
) -> Response:
    """One request on a connection of its own."""
    content = raw if raw is not None else json.dumps(PING if body is None else body).encode()
    sized = {"Connection": "close", "Content-Length": str(len(content)), **(changes or {})}
    with connect(goat) as connection:
        connection.sendall(head(goat, sized, start=start) + content)
        return read_response(connection)


def tool_call(name: str, arguments: Mapping[str, Any], request_id: int = 1) -> dict[str, Any]:
    params = {"name": name, "arguments": dict(arguments), "_meta": PING["params"]["_meta"]}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def call_headers(name: str) -> dict[str, str | None]:
    return {"Mcp-Method": "tools/call", "Mcp-Name": name}


def call(goat: HttpGoat, name: str, arguments: Mapping[str, Any], request_id: int = 1) -> Response:
    """A tool call of the stateless era."""
    return exchange(goat, call_headers(name), tool_call(name, arguments, request_id))


def handshake(goat: HttpGoat, token: str = TOKEN) -> str:
    """Open a session of the handshake era; its id."""
    client = {"name": "raw", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    headers = session_headers(None, token)
    opened = exchange(goat, headers, body)
    assert opened.status == 200, opened
    session_id = opened.headers["mcp-session-id"]
    noticed = exchange(
        goat, session_headers(session_id, token), {"jsonrpc": "2.0", "method": "notifications/initialized"}
    )
    assert noticed.status == 202, noticed
    return session_id


def session_headers(session_id: str | None, token: str = TOKEN) -> dict[str, str | None]:
    return {
        "Authorization": f"Bearer {token}",
        "MCP-Protocol-Version": "2025-11-25",
        "Mcp-Method": None,
        "Mcp-Session-Id": session_id,
    }
