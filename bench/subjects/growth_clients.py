"""How the time of one call grows with the number of clients: 1, 50 and 200 of them at a time over HTTP, each with a
connection and, in the handshake era, a session of its own. All are connected before the first calls, and each has one
call open at any time. Our limits are raised for so many: by default an upstream runs 16 calls, 64 wait and others get
`E_BUSY`, and the 101st session ends an idle one.

The client is the one of a few lines (`http_load.py`); it works on the same cores for all. mcp-hub knows the handshake
only, over HTTP with SSE.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from statistics import median, quantiles
from typing import get_args

from bench.hop import DIRECT, FASTMCP, OURS
from bench.http_load import HttpFailure, HttpLoad, SseLoad, http_load, sse_load
from bench.peers import HUB, fastmcp, hub, is_here
from bench.report import Row
from bench.timing import interleaved
from bench.wire import Era
from bench.workbench import FASTMCP_PYTHON, Workbench, free_port, script

CALLS_BY_CLIENTS = {1: 100, 50: 5, 200: 2}
"""How often each of so many clients calls in a round."""
SLOW_S = 20.0
"""Who needs longer for a round is measured once: a round says it."""
ECHOED = {"text": "hello"}
MOST = max(CALLS_BY_CLIENTS)
Loads = Sequence[HttpLoad | SseLoad]


def measure(bench: Workbench) -> list[Row]:
    with ExitStack() as stack:

        def serve(command: Callable[[int], list[str]]) -> str:
            port = free_port()
            stack.enter_context(bench.http_server(command(port), port))
            return f"http://127.0.0.1:{port}/mcp"

        upstream = serve(lambda port: script("bare_server", str(port)))
        file = bench.upstreams_file({"echo": {"url": upstream, "concurrency": MOST}}, "growth-clients")
        room = ("--set", f"limits.sessions={2 * MOST}")
        urls = {DIRECT: upstream, OURS: serve(lambda port: bench.goat_over_http(port, "--upstreams", str(file), *room))}
        if FASTMCP_PYTHON.exists():
            urls[FASTMCP] = serve(lambda port: fastmcp(str(port), upstream))
        if is_here(HUB):
            urls[HUB] = serve(lambda port: hub(bench, port, {"echo": {"url": upstream}}))
        rows: list[Row] = []
        for era in get_args(Era):
            sessions = {
                name: _clients(name, url, era) for name, url in urls.items() if name != HUB or era == "handshake"
            }
            for clients, calls in CALLS_BY_CLIENTS.items():
                rows += _rows(bench, f"{clients} at a time over HTTP, {era}", sessions, clients, calls)
        return rows


def _clients(name: str, url: str, era: Era) -> Loads:
    """One for each client."""
    if name == HUB:
        return [sse_load(url, "echo__echo", ECHOED, b"hello")] * MOST
    tool = "mcp__echo__echo" if name == OURS else "echo"
    if era == "modern":  # without sessions they are all alike
        return [http_load(url, era, tool, ECHOED, b"hello")] * MOST
    return [http_load(url, era, tool, ECHOED, b"hello") for _ in range(MOST)]


def _rows(bench: Workbench, what: str, sessions: dict[str, Loads], clients: int, calls: int) -> list[Row]:
    took: dict[str, list[float]] = {name: [] for name in sessions}
    last_round_s = dict.fromkeys(sessions, 0.0)

    def run(name: str) -> float:
        if last_round_s[name] > SLOW_S:
            return last_round_s[name]
        begun = time.perf_counter()
        try:
            took[name] += asyncio.run(_together(sessions[name][:clients], calls))
        except (OSError, HttpFailure, TimeoutError, ExceptionGroup) as problem:
            if name == OURS:
                raise
            print(f"{what}: {name} failed: {problem!r}", file=sys.stderr)
            took.pop(name, None)
            last_round_s[name] = math.inf
            return math.inf
        last_round_s[name] = time.perf_counter() - begun
        return last_round_s[name]

    rounds = bench.rounds(5, 2)
    runs: dict[str, Callable[[], float]] = {name: partial(run, name) for name in sessions}
    interleaved(runs, rounds, lambda number: bench.say(f"{what}: round {number + 1} of {rounds}"))
    return [
        Row(f"call, {what}, {measure}", of(took[OURS]), "ms", name, of(took[name]))
        for measure, of in (("p50", median), ("p95", _p95))
        for name in took
        if name != OURS
    ]


async def _together(loads: Loads, calls: int) -> list[float]:
    """How long each call took, without the first of every client, which warms up."""
    together = asyncio.Barrier(len(loads))
    each = await asyncio.gather(*(load.run(calls + 1, 1, together) for load in loads))
    return [took_ms for single in each for took_ms in single[1:]]


def _p95(took_ms: Sequence[float]) -> float:
    return quantiles(took_ms, n=20)[-1]
