"""A real HTTP server of ours in a thread of the test process, and sockets that talk to it byte by byte."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.server.http.server import HttpServer, parse_address
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory

OPERATORS = "token-of-the-operator-0123456789-0123456789"
NARROW = "token-of-the-narrow-profile-0123456789-0123"
BROAD = "token-of-the-broad-profile-0123456789-01234"
CLIENT: dict[str, Any] = {"name": "raw", "version": "1"}
PING: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/list",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": CLIENT,
        }
    },
}
LISTEN: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "subscriptions/listen",
    "params": {"notifications": {"toolsListChanged": True}, "_meta": PING["params"]["_meta"]},
}
OPEN: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT},
}


@dataclass(frozen=True)
class RawServer:
    target: str | tuple[str, int]

    @property
    def host(self) -> str:
        return "localhost" if isinstance(self.target, str) else f"{self.target[0]}:{self.target[1]}"

    def connect(self) -> socket.socket:
        if isinstance(self.target, tuple):
            return socket.create_connection(self.target, timeout=20)
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.target)  # with a time limit it would not wait for a place in a full queue
        connection.settimeout(20)
        return connection

    def head(self, token: str | None, start: str, *, closes: bool = True, **headers: str | None) -> bytes:
        """Good but for what is given, with _ for - in names; no framing of a body."""
        given: dict[str, str | None] = {
            "Host": self.host,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Authorization": f"Bearer {token}" if token else None,
            "Connection": "close" if closes else None,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = [start, *(f"{name}: {value}" for name, value in given.items() if value is not None)]
        return "\r\n".join(lines).encode() + b"\r\n"

    def post(self, token: str | None, body: Mapping[str, Any], *, closes: bool = True, **headers: str | None) -> bytes:
        content = json.dumps(body).encode()
        head = self.head(
            token, f"POST {headers.pop('path', '/mcp')} HTTP/1.1", closes=closes, Mcp_Method=body["method"], **headers
        )
        return head + f"Content-Length: {len(content)}\r\n\r\n".encode() + content

    def in_session(self, token: str, session_id: str | None, body: Mapping[str, Any], **more: Any) -> bytes:
        version = "2025-11-25"
        return self.post(token, body, MCP_Protocol_Version=version, Mcp_Session_Id=session_id, **more)

    def exchange(self, request: bytes) -> tuple[int, bytes]:
        """One request on a connection of its own, read to its end: status and all that came."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_all(connection)

    def status(self, token: str | None) -> int:
        return self.exchange(self.post(token, PING))[0]

    def open_session(self, token: str, path: str = "/mcp") -> tuple[int, str]:
        """Status and id."""
        status, answer = self.exchange(self.in_session(token, None, OPEN, path=path))
        return status, header(answer, b"mcp-session-id")

    def ping_session(self, token: str, session_id: str, path: str = "/mcp") -> int:
        return self.exchange(
            self.in_session(token, session_id, {"jsonrpc": "2.0", "id": 5, "method": "ping"}, path=path)
        )[0]


def header(answer: bytes, name: bytes) -> str:
    for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n"):
        if line.lower().startswith(name + b":"):
            return line.partition(b":")[2].strip().decode()
    return ""


def read_all(connection: socket.socket) -> tuple[int, bytes]:
    """Status 0 if the other side ended it without an answer. Raises `TimeoutError` if it does not end."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionError:
        pass
    return status_of(received), received


def read_until(connection: socket.socket, end: bytes) -> bytes:
    received = b""
    while end not in received and (piece := connection.recv(65536)):
        received += piece
    return received


def status_of(answer: bytes) -> int:
    return int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0


def is_ended(connection: socket.socket) -> bool:
    """Whether the other side has ended it, after what it had to say."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connection.settimeout(20)


def wait_until_ended(connections: list[socket.socket], at_most_s: float) -> float:
    """How long it took."""
    begun_s = time.monotonic()
    left = connections
    while left := [one for one in left if not is_ended(one)]:
        assert time.monotonic() - begun_s < at_most_s, f"{len(left)} are open"
        time.sleep(0.05)
    return time.monotonic() - begun_s


@contextmanager
def raw_server(
    folder: Path, listen: str = "127.0.0.1:0", *, has_profiles: bool = True, **limits: Any
) -> Generator[RawServer]:
    """With the operator's token and, if not said otherwise, those of two profiles."""
    settings = settings_of(
        {
            "workspace": [str(folder)],
            "mode": "bypassPermissions",
            "profiles": {"narrow": {}, "broad": {}},
            "limits": {"calls_per_s": 0, **limits},
        },
        "the test",
    )
    tokens = {"narrow": NARROW, "broad": BROAD} if has_profiles else {}
    urls: list[str] = []
    is_listening = threading.Event()
    stops: list[Any] = []

    def listens(url: str) -> None:
        urls.append(url)
        is_listening.set()

    async def serve() -> None:
        gateway = Gateway(settings, approval=Approval.ELICIT, state=StateDirectory(folder / "state"))
        adapter = Adapter(gateway, "http")
        async with gateway.running(), anyio.create_task_group() as group:
            await group.start(adapter.run)
            server = HttpServer(adapter, parse_address(listen), OPERATORS, settings.limits, tokens)
            server.bind()
            stops.append(server.stop)
            await server.serve(listens)
            group.cancel_scope.cancel()

    thread = threading.Thread(target=anyio.run, args=(serve,))
    thread.start()
    try:
        assert is_listening.wait(60)
        path = urls[0].removeprefix("unix:")
        if path != urls[0]:
            yield RawServer(path)
        else:
            host, _, port = urls[0].split("/")[2].rpartition(":")
            yield RawServer((host, int(port)))
    finally:
        for stop in stops:
            stop()
        thread.join(60)
