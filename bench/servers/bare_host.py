"""The bad neighbours of the chaos test without goat-mcp: a host that starts them, calls them and reads what they print.

`python -m bench.servers.bare_host PORT MARK`: calls each of them every `PAUSE_S` until its stdin ends. It does as
little with what comes as a host can: it throws it away. Those that end are started again with their next call.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tests.chaos.neighbourhood import BAD_OVER_HTTP, BAD_OVER_STDIO, CALL_TIMEOUT_S, over_stdio

PAUSE_S = 1.2
OPENING: tuple[Mapping[str, Any], ...] = (
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}},
)
CALL: Mapping[str, Any] = {"id": 3, "method": "tools/call", "params": {"name": "t", "arguments": {}}}


def frame(message: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


class Neighbour:
    """One of them over stdio."""

    def __init__(self, kind: str, mark: Path) -> None:
        entry = over_stdio(kind, mark)
        self._command: list[str] = [entry["command"], *entry["args"]]
        self._process: subprocess.Popen[bytes] | None = None

    def call(self) -> None:
        try:
            if self._process is None or self._process.poll() is not None:
                self.end()
                self._start()
            self._send(CALL)
        except (BrokenPipeError, BlockingIOError):
            pass  # it has ended, or does not read

    def end(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # with what it has started
            self._process.wait()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        threading.Thread(target=_drain, args=(self._process.stdout,), daemon=True).start()
        for message in OPENING:
            self._send(message)

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process is not None and self._process.stdin is not None
        os.write(self._process.stdin.fileno(), frame(message))


def _drain(output: IO[bytes]) -> None:
    while output.read(1 << 18):
        pass


def call_over_http(port: int, kind: str) -> None:
    """One call, given up as a client would."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=CALL_TIMEOUT_S)
    try:
        connection.request("POST", f"/{kind}", frame(CALL), {"content-type": "application/json"})
        connection.getresponse().read(16 * 1024 * 1024)
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()


def main() -> None:
    port, mark = int(sys.argv[1]), Path(sys.argv[2])
    neighbours = [Neighbour(kind, mark) for kind in BAD_OVER_STDIO]
    over = threading.Event()

    def keep_calling() -> None:
        while not over.wait(PAUSE_S):
            for neighbour in neighbours:
                neighbour.call()
            for kind in BAD_OVER_HTTP:
                threading.Thread(target=call_over_http, args=(port, kind), daemon=True).start()

    caller = threading.Thread(target=keep_calling)
    caller.start()
    sys.stdin.read()
    over.set()
    caller.join()
    for neighbour in neighbours:
        neighbour.end()
    os._exit(0)


main()
