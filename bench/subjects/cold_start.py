"""Upstreams that were never seen: process start to the first list that holds all of their tools, beside mcp-hub.

Nothing is on disk for either. Ours is started by the resident process, which is warm, and without it. The upstreams use
no library, so that what is measured is the gateway: importing, starting the processes, the handshakes, the lists. How
the time grows with their number shows what each one costs.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bench.first_sight import listed_at_once
from bench.peers import HUB, hub, is_here
from bench.process_cost import cpu_ms
from bench.processes import Started, started_processes
from bench.report import Bar, Row
from bench.resident import NewServers, warm_resident
from bench.servers.small_upstream import TOOL_COUNT
from bench.sse import LOOK_AGAIN_S, sse_client
from bench.timing import Samples, interleaved, medians
from bench.wire import ANSWER_TIMEOUT_S, WireClient, WireFailure
from bench.workbench import CannotMeasure, Workbench, free_port, script, stop

COUNTS = (1, 10, 50)
HUB_BAR = 1.2
RESIDENT, ALONE = "resident", "alone"
FULL = ("--set", "catalog.mode=full")


def measure(bench: Workbench) -> list[Row]:
    built_in = listed_at_once(bench, bench.goat(*FULL))
    rows: list[Row] = []
    with started_processes() as started:
        warm_resident(bench, bench.goat(*FULL), started)
        for count in COUNTS:
            rows += _rows(bench, count, built_in, started)
    return rows


def _rows(bench: Workbench, count: int, built_in: int, started: Started) -> list[Row]:
    entries = {
        f"small{number}": {"command": sys.executable, "args": script("small_upstream", f"small{number}")[1:]}
        for number in range(count)
    }
    wanted = count * TOOL_COUNT
    worked: Samples = {RESIDENT: [], ALONE: [], HUB: []}
    starts: dict[str, Callable[[], float]] = {
        RESIDENT: partial(_ours, bench, entries, built_in + wanted, worked[RESIDENT], started),
        ALONE: partial(_ours, bench, entries, built_in + wanted, worked[ALONE], None),
    }
    if is_here(HUB):
        starts[HUB] = partial(_hub, bench, entries, wanted, worked[HUB])
    rounds = bench.rounds(9, 3)
    what = f"cold start of {count} upstreams"
    took = medians(interleaved(starts, rounds, lambda number: bench.say(f"{what}: round {number + 1} of {rounds}")))
    cpu = medians(worked) if HUB in took else medians({name: worked[name] for name in (RESIDENT, ALONE)})
    rows: list[Row] = []
    for name in (RESIDENT, ALONE):
        against = (HUB, took[HUB]) if HUB in took else ("", None)
        bar = Bar(took[name] / took[HUB], HUB_BAR, "x") if HUB in took and count == max(COUNTS) else None
        rows.append(Row(f"{what} to the full list, {name}", took[name], "ms", *against, bar))
        rows.append(Row(f"{what}, CPU time of the gateway, {name}", cpu[name], "ms", against[0], cpu.get(HUB)))
    return rows


def _ours(
    bench: Workbench, entries: Mapping[str, Any], wanted: int, worked: list[float], resident_of: Started | None
) -> float:
    """Our start with a state directory that is empty, forked by the resident process if one is to."""
    state = {"GOAT_MCP_STATE_DIR": str(bench.folder(f"cold-{time.monotonic_ns()}"))}
    file = bench.upstreams_file(entries, f"cold-{len(entries)}")
    forked = NewServers(resident_of) if resident_of is not None else None
    env = (bench.resident_env if resident_of is not None else bench.env) | state
    started = time.perf_counter()
    with WireClient(bench.goat("--upstreams", str(file), *FULL), env, stderr=bench.root / "cold.log") as client:
        client.open()
        _until_full(client.list_tools, wanted)
        took_ms = (time.perf_counter() - started) * 1000
        server = client.process.pid if forked is None else forked.next()
        if server is None:
            raise CannotMeasure("the resident process did not take a start")
        worked.append(cpu_ms(server))
    return took_ms


def _hub(bench: Workbench, entries: Mapping[str, Any], wanted: int, worked: list[float]) -> float:
    port = free_port()
    command = hub(bench, port, entries)
    with (bench.root / "cold-hub.log").open("wb") as log:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=bench.env)
        try:
            client = sse_client(port, process)
            _until_full(client.list_tools, wanted)
            took_ms = (time.perf_counter() - started) * 1000
            worked.append(cpu_ms(process.pid))
            client.close()
        finally:
            stop(process)
    return took_ms


def _until_full(list_tools: Callable[[], Sequence[object]], wanted: int) -> None:
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while (listed := len(list_tools())) < wanted:
        if time.monotonic() > deadline:
            raise WireFailure(f"only {listed} of {wanted} tools were ever listed")
        time.sleep(LOOK_AGAIN_S)
