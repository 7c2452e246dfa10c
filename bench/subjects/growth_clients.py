"""How the time of one call grows with the number of clients: 1, 50 and 200 of them over HTTP, each with a connection
that it keeps and, in the handshake era, a session of its own.

All are connected and have called once before the first call that counts, and each has one call open at any time. Our
limits are raised for so many: by default an upstream runs 16 calls, 64 wait and others get `E_BUSY`, and the 101st
session ends an idle one. One loop in one process is all the clients, for all who are compared.
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
from bench.http_load import HttpFailure, HttpLoad, SseLoad, StartTogether, http_load, sse_load
from bench.peers import HUB, fastmcp, hub, is_here
from bench.report import Row
from bench.timing import interleaved
from bench.wire import Era
from bench.workbench import FASTMCP_PYTHON, CannotMeasure, Workbench, free_port, script

CALLS_BY_CLIENTS = {1: 100, 50: 6, 200: 3}
"""How often each of so many clients calls in a round."""
MOST = max(CALLS_BY_CLIENTS)
SLOW_S, ROUND_TIMEOUT_S = 10.0, 40.0
"""Whoever needs longer for a round than the first is not asked again in this era; than the second, there are no figures
of it for so many clients. If that is us, nothing is measured."""
ECHOED = {"text": "hello"}
Clients = Sequence[HttpLoad | SseLoad]
Run = Callable[[], float]


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
            clients = {
                name: _clients(name, url, era) for name, url in urls.items() if name != HUB or era == "handshake"
            }
            for count, calls in CALLS_BY_CLIENTS.items():
                rows += _rows(bench, f"{count} clients over HTTP, {era}", clients, count, calls)
        return rows


def _clients(name: str, url: str, era: Era) -> Clients:
    if name == HUB:  # each opens its session when it begins
        return [sse_load(url, "echo__echo", ECHOED, b"hello")] * MOST
    tool = "mcp__echo__echo" if name == OURS else "echo"
    if era == "modern":  # without sessions they are all alike
        return [http_load(url, era, tool, ECHOED, b"hello")] * MOST
    return [http_load(url, era, tool, ECHOED, b"hello") for _ in range(MOST)]


def _rows(bench: Workbench, what: str, clients: dict[str, Clients], count: int, calls: int) -> list[Row]:
    took: dict[str, list[float]] = {name: [] for name in clients}

    def run(name: str) -> float:
        if name not in clients:
            return math.inf
        begun = time.perf_counter()
        try:
            took[name] += asyncio.run(_together(clients[name][:count], calls))
        except (OSError, EOFError, HttpFailure, TimeoutError, ExceptionGroup) as problem:
            if name == OURS:
                raise CannotMeasure(f"{what}: {problem!r}") from problem
            print(f"{what}: {name} is left out: {problem!r}", file=sys.stderr)
            del took[name], clients[name]
            return math.inf
        took_s = time.perf_counter() - begun
        if took_s > SLOW_S and name != OURS:
            del clients[name]
        return took_s

    rounds = bench.rounds(7, 3)
    runs: dict[str, Run] = {name: partial(run, name) for name in clients}
    interleaved(runs, rounds, lambda number: bench.say(f"{what}: round {number + 1} of {rounds}"))
    return [
        Row(f"call, {what}, {measure}", of(took[OURS]), "ms", name, of(took[name]))
        for measure, of in (("p50", median), ("p95", _p95))
        for name in took
        if name != OURS
    ]


async def _together(clients: Clients, calls: int) -> list[float]:
    """How long each call took."""
    start = StartTogether(len(clients))
    async with asyncio.timeout(ROUND_TIMEOUT_S), asyncio.TaskGroup() as group:
        each = [group.create_task(client.run(calls + 1, 1, start)) for client in clients]
    return [took_ms for one in each for took_ms in one.result()]


def _p95(took_ms: Sequence[float]) -> float:
    return quantiles(took_ms, n=20)[-1]
