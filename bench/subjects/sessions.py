"""What a client costs that does nothing: memory of a session and of an open stream, and CPU time to notify one stream.

From these, and from the CPU time of a call (`replicas`), docs/team.md derives what a number of users needs.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from http.client import HTTPConnection
from urllib.parse import urlsplit

from bench.http_load import http_load
from bench.process_cost import cpu_ms, resident_mb
from bench.report import Row
from bench.workbench import CannotMeasure, Workbench
from tests.e2e.conftest import fill
from tests.e2e.goat import TOKEN, Launch, http_goat
from tests.quick_start import use_real_processes

SETTLES_S = 3.0
"""Settings files are looked at every second, and followed within two."""
NOTICE_WITHIN_S = 20.0
KB = 1024
_LIMITS = ("limits.sessions=4000", "limits.connections=4000", "limits.calls_per_s=0", "ui.enabled=false")


def measure(bench: Workbench) -> list[Row]:
    use_real_processes(True)
    try:
        return _measured(bench)
    finally:
        use_real_processes(False)


def _measured(bench: Workbench) -> list[Row]:
    count = bench.rounds(400, 100)
    folder = bench.folder("sessions")
    settings = folder / "goat-mcp.yaml"
    settings.write_text("catalog: {deny: []}\n")
    words = [word for limit in _LIMITS for word in ("--set", limit)]
    with ExitStack() as stack:
        launch = Launch(folder, fill(folder / "workspace"), ("--config", str(settings), *words))
        goat = stack.enter_context(http_goat(launch))
        pid = goat.process.pid
        _open(goat.url, 20)  # what the first ones load stays
        empty_mb = resident_mb(pid)
        heads = _open(goat.url, count)
        for head in heads:
            _list(goat.url, head)
        sessions_mb = resident_mb(pid)
        streams = [stack.enter_context(_stream(goat.url, head)) for head in heads]
        time.sleep(SETTLES_S)
        streams_mb = resident_mb(pid)
        idle_ms = _cpu_over(pid, SETTLES_S)
        before_ms = cpu_ms(pid)
        settings.write_text(f"catalog: {{deny: {json.dumps(['WebFetch'])}}}\n")
        for stream in streams:
            _wait_for_notice(stream)
        time.sleep(SETTLES_S)
        notified_ms = cpu_ms(pid) - before_ms - idle_ms
    return [
        Row("memory of an idle session", (sessions_mb - empty_mb) * KB / count, "KB"),
        Row("memory of an open stream", (streams_mb - sessions_mb) * KB / count, "KB"),
        Row("CPU to notify one stream", max(0.0, notified_ms) / count, "ms"),
        Row("memory of a server without sessions", empty_mb, "MB"),
    ]


def _open(url: str, count: int) -> Sequence[bytes]:
    """Heads of requests in so many sessions."""
    return [http_load(url, "handshake", "Read", {}, b"", TOKEN).head for _ in range(count)]


def _list(url: str, head: bytes) -> None:
    """Ask for the tools, as clients do: whoever has no list need not hear that it changed."""
    parts = urlsplit(url)
    headers = dict(line.split(": ", 1) for line in head.decode().splitlines()[1:] if ": " in line)
    del headers["Content-Length"]
    connection = HTTPConnection(str(parts.hostname), int(parts.port or 0), timeout=NOTICE_WITHIN_S)
    connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}), headers)
    connection.getresponse().read()
    connection.close()


def _stream(url: str, head: bytes) -> socket.socket:
    parts = urlsplit(url)
    found = re.search(rb"Mcp-Session-Id: (\S+)", head)
    if found is None:
        raise CannotMeasure("the server gave no session id")
    request = (
        f"GET /mcp HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {TOKEN}\r\nAccept: text/event-stream\r\n"
        f"Mcp-Session-Id: {found[1].decode()}\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n"
    )
    stream = socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=NOTICE_WITHIN_S)
    stream.sendall(request.encode())
    return stream


def _wait_for_notice(stream: socket.socket) -> None:
    received, ends_at_s = b"", time.monotonic() + NOTICE_WITHIN_S
    while b"list_changed" not in received:
        if not (piece := stream.recv(65536)):
            raise CannotMeasure(f"a stream ended: {received[:200]!r}")
        if time.monotonic() > ends_at_s:
            raise CannotMeasure(f"no notice within {NOTICE_WITHIN_S:.0f} s: {received[:200]!r}")
        received += piece


def _cpu_over(pid: int, seconds: float) -> float:
    begun_ms = cpu_ms(pid)
    time.sleep(seconds)
    return cpu_ms(pid) - begun_ms
