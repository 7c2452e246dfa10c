"""Replicas for tests: processes of goat-mcp with one Redis, and raw requests to any of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tests.e2e.goat import REPOSITORY, TOKEN, Launch, wait_for_url
from tests.e2e.processes import end
from tests.quick_start import goat_command, module_command
from tests.redis_server import RedisServer, redis_server

KEY = "key-of-the-replicas-in-tests-0123456789"
WAIT_S = 60.0
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
ENDPOINT = "mcp__effects__"


@dataclass
class Running:
    """One replica. `address` is where it listens."""

    name: str
    url: str
    process: subprocess.Popen[str]
    said: list[str]

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None and parts.port is not None
        return parts.hostname, parts.port

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def probe(self, path: str = "/readyz") -> tuple[int, str]:
        answer = httpx2.get(self.url.removesuffix("/mcp") + path, timeout=WAIT_S)
        return answer.status_code, answer.text.strip()


@dataclass
class Cluster:
    """`effects` is where the upstream of all replicas writes what it did."""

    folder: Path
    redis: RedisServer
    stack: ExitStack
    hosts: list[str] = field(default_factory=list[str])

    @property
    def effects(self) -> list[str]:
        file = self.folder / "effects.txt"
        return file.read_text().splitlines() if file.exists() else []

    def start(self, name: str, *, package: Path | None = None, listen: str = "127.0.0.1:0", **settings: Any) -> Running:
        """A replica of this name. `package` is a folder with another copy of goat-mcp."""
        own, workspace = self.folder / name, self.folder / "workspace"
        workspace.mkdir(exist_ok=True)
        own.mkdir(exist_ok=True)
        token = own / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        command, *arguments = module_command(
            "tests.server.replicas.upstream_with_effects", str(self.folder / "effects.txt")
        )
        entry = {
            "command": command,
            "args": arguments,
            "env": {"PYTHONPATH": str(REPOSITORY)},
            "allow": ["elicitation"],
            "share": False,  # its process ends with the replica of the call: who owns one for all has tests of its own
        }
        upstreams = own / "upstreams.json"
        upstreams.write_text(json.dumps({"mcpServers": {"effects": entry}}))
        chosen = {
            "state.url": self.redis.url,
            "state.key": KEY,
            "replica.name": name,
            "replica.lease_s": 2,
            "replica.leave_delay_s": 0.5,
            "http.hosts": self.hosts,
            "permissions.allow": ["mcp__effects"],
            "limits.calls_per_s": 0,
            "ui.enabled": False,
            **{key.replace("__", "."): value for key, value in settings.items()},
        }
        options = [word for key, value in chosen.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        words = ("serve", "--workspace", str(workspace), "--upstreams", str(upstreams), *options)
        more = ("--http", listen, "--token-file", str(token))
        environment = dict(Launch(own, workspace).environment)
        goat = goat_command(*words, *more)
        if package is not None:
            goat = [sys.executable, "-m", "goat_mcp", *words, *more]
            environment["PYTHONPATH"] = str(package)
        process = subprocess.Popen(
            goat,
            env=environment,
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.stack.callback(_end, process)
        said: list[str] = []
        return Running(name, wait_for_url(process, said), process, said)

    def live(self) -> list[str]:
        """The names of the replicas whose leases last, by Redis."""
        keys = self.redis.ask("KEYS", "*:replicas:entry:*").split()
        return sorted(key.rpartition(":")[2] for key in keys if ":replicas:entry:" in key)


@contextmanager
def commands_seen(redis: RedisServer) -> Generator[list[str]]:
    """What replicas asked this Redis meanwhile; there at the end. Not what scripts did there, nor their texts, nor the
    pings that connections send by themselves."""
    seen: list[str] = []
    with socket.create_connection(("127.0.0.1", redis.port), timeout=WAIT_S) as monitor:
        lines = monitor.makefile("r")
        monitor.sendall(b"MONITOR\r\n")
        assert lines.readline().strip() == "+OK"
        yield seen
        redis.ask("ECHO", "the end")
        while "the end" not in (line := lines.readline()):
            if not any(word in line for word in ('"PING"', '"SCRIPT"', " lua]")):
                seen.append(line)


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.kill()
    end(process)


@contextmanager
def cluster(folder: Path, *hosts: str) -> Generator[Cluster]:
    """No replica yet."""
    with redis_server(folder) as redis, ExitStack() as stack:
        yield Cluster(folder, redis, stack, list(hosts))


def headers(**more: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in more.items()},
    }


def last_message(answer: httpx2.Response) -> dict[str, Any]:
    """The JSON-RPC answer, alone or at the end of a stream."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        return json.loads(answer.text)
    data = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    return json.loads(data[-1])


def call(url: str, tool: str, arguments: Mapping[str, Any], *, path: str = "", **more: Any) -> dict[str, Any]:
    """A call of the 2026-07-28 era, on a connection of its own. `more` are further parameters."""
    client = {"name": "raw", "version": "1"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": FORMS,
        "io.modelcontextprotocol/clientInfo": client,
    }
    params = {"name": tool, "arguments": dict(arguments), "_meta": meta, **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    sent = headers(MCP_Protocol_Version="2026-07-28", Mcp_Method="tools/call", Mcp_Name=tool)
    answer = httpx2.post(url + path, json=body, headers=sent, timeout=WAIT_S)
    assert answer.headers.get("content-type") is not None, answer.text
    return last_message(answer)


def answered(asked: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the next round: each question is accepted with this content."""
    result = asked["result"]
    assert result["resultType"] == "input_required", asked
    answer = {"action": "accept", "content": dict(content)}
    return {"inputResponses": dict.fromkeys(result["inputRequests"], answer), "requestState": result["requestState"]}


@dataclass
class RawSession:
    """A session of the handshake era, whose requests may go anywhere."""

    id: str

    def post(self, url: str, message: Mapping[str, Any]) -> httpx2.Response:
        sent = headers(MCP_Protocol_Version="2025-11-25", Mcp_Session_Id=self.id)
        return httpx2.post(url, json={"jsonrpc": "2.0", **message}, headers=sent, timeout=WAIT_S)

    def call(self, url: str, tool: str, arguments: Mapping[str, Any], number: int = 1) -> dict[str, Any]:
        params = {"name": tool, "arguments": dict(arguments)}
        return last_message(self.post(url, {"id": number, "method": "tools/call", "params": params}))


def open_session(url: str, capabilities: Mapping[str, Any] | None = None) -> RawSession:
    """At this replica."""
    client = {"name": "raw", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": dict(capabilities or {}), "clientInfo": client}
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    answer = httpx2.post(url, json=body, headers=headers(), timeout=WAIT_S)
    assert answer.status_code == 200, answer.text
    session = RawSession(answer.headers["mcp-session-id"])
    assert session.post(url, {"method": "notifications/initialized"}).status_code == 202
    return session


def wait_until(is_so: Any, what: str) -> None:
    """Raises `AssertionError` after a minute."""
    until_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < until_s, what
        time.sleep(0.05)
