"""Upstreams that were never seen: process start to the first list that holds all of their tools, beside mcp-hub.

Nothing is on disk for either. The upstreams use no library, so that what is measured is the gateway: importing,
starting the processes, the handshakes, the lists. How the time grows with their number shows what each one costs.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

from bench.first_sight import listed_at_once
from bench.hop import OURS
from bench.peers import HUB, hub, is_here
from bench.process_cost import cpu_ms
from bench.report import Bar, Row
from bench.servers.small_upstream import TOOL_COUNT
from bench.timing import Samples, interleaved
from bench.wire import ANSWER_TIMEOUT_S, HANDSHAKE_PARAMS, WireClient, WireFailure
from bench.workbench import Workbench, free_port, script

COUNTS = (1, 10, 50)
HUB_BAR = 1.2
LOOK_AGAIN_S = 0.01
FULL = ("--set", "catalog.mode=full")


def measure(bench: Workbench) -> list[Row]:
    built_in = listed_at_once(bench, bench.goat(*FULL))
    rows: list[Row] = []
    for count in COUNTS:
        rows += _rows(bench, count, built_in)
    return rows


def _rows(bench: Workbench, count: int, built_in: int) -> list[Row]:
    entries = {
        f"small{number}": {"command": sys.executable, "args": script("small_upstream", f"small{number}")[1:]}
        for number in range(count)
    }
    wanted = count * TOOL_COUNT
    worked: Samples = {OURS: [], HUB: []}
    starts: dict[str, Callable[[], float]] = {
        OURS: partial(_ours, bench, entries, built_in + wanted, worked[OURS]),
    }
    if is_here(HUB):
        starts[HUB] = partial(_hub, bench, entries, wanted, worked[HUB])
    rounds = bench.rounds(9, 3)
    what = f"cold start of {count} upstreams"
    samples = interleaved(starts, rounds, lambda number: bench.say(f"{what}: round {number + 1} of {rounds}"))
    ours, ours_cpu = median(samples[OURS]), median(worked[OURS])
    if HUB not in samples:
        return [Row(f"{what} to the full list", ours, "ms"), Row(f"{what}, CPU time of ours", ours_cpu, "ms")]
    theirs = median(samples[HUB])
    bar = Bar(ours / theirs, HUB_BAR, "x") if count == max(COUNTS) else None
    return [
        Row(f"{what} to the full list", ours, "ms", HUB, theirs, bar),
        Row(f"{what}, CPU time of the gateway", ours_cpu, "ms", HUB, median(worked[HUB])),
    ]


def _ours(bench: Workbench, entries: Mapping[str, Any], wanted: int, worked: list[float]) -> float:
    """Our start with a state directory that is empty."""
    state = {"GOAT_MCP_STATE_DIR": str(bench.folder(f"cold-{time.monotonic_ns()}"))}
    file = bench.upstreams_file(entries, f"cold-{len(entries)}")
    started = time.perf_counter()
    with WireClient(
        bench.goat("--upstreams", str(file), *FULL), bench.env | state, stderr=bench.root / "cold.log"
    ) as client:
        client.open()
        _until_full(client.list_tools, wanted)
        took_ms = (time.perf_counter() - started) * 1000
        worked.append(cpu_ms(client.process.pid))
    return took_ms


def _hub(bench: Workbench, entries: Mapping[str, Any], wanted: int, worked: list[float]) -> float:
    port = free_port()
    command = hub(bench, port, entries)
    with (bench.root / "cold-hub.log").open("wb") as log:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=bench.env)
        try:
            client = _connected(port, process)
            _until_full(client.list_tools, wanted)
            took_ms = (time.perf_counter() - started) * 1000
            worked.append(cpu_ms(process.pid))
            client.close()
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    return took_ms


def _until_full(list_tools: Callable[[], Sequence[object]], wanted: int) -> None:
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while (listed := len(list_tools())) < wanted:
        if time.monotonic() > deadline:
            raise WireFailure(f"only {listed} of {wanted} tools were ever listed")
        time.sleep(LOOK_AGAIN_S)


def _connected(port: int, process: subprocess.Popen[bytes]) -> SseClient:
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return SseClient(port)
        except (OSError, http.client.HTTPException):
            time.sleep(LOOK_AGAIN_S)
    raise WireFailure("mcp-hub does not answer")


@dataclass
class SseClient:
    """A client of the transport of 2024-11-05, of as little code as possible: events in, messages out."""

    port: int
    _last_id: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._events = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_TIMEOUT_S)
        self._events.request("GET", "/mcp", headers={"Accept": "text/event-stream"})
        self._stream = self._events.getresponse()
        if self._stream.status != http.client.OK:
            self._events.close()
            raise http.client.HTTPException(f"status {self._stream.status}")
        self._endpoint = self._event()
        self._messages = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_TIMEOUT_S)
        self.request("initialize", {**HANDSHAKE_PARAMS, "protocolVersion": "2024-11-05"})
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def list_tools(self) -> list[dict[str, Any]]:
        return self.request("tools/list", {})["tools"]

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        self._post({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        while True:
            message = json.loads(self._event())
            if message.get("id") != self._last_id or "method" in message:
                continue
            if "error" in message:
                raise WireFailure(f"{method}: {message['error']}")
            return message["result"]

    def close(self) -> None:
        self._messages.close()
        self._stream.close()
        self._events.close()

    def _post(self, message: Mapping[str, Any]) -> None:
        self._messages.request(
            "POST", self._endpoint, json.dumps(message).encode(), {"Content-Type": "application/json"}
        )
        self._messages.getresponse().read()

    def _event(self) -> str:
        """The data of the next event."""
        data: list[str] = []
        while line := self._stream.readline():
            text = line.decode().rstrip("\r\n")
            if text.startswith("data:"):
                data.append(text[5:].lstrip())
            elif not text and data:
                return "\n".join(data)
        raise WireFailure("the stream of events ended")
