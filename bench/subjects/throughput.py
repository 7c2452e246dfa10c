"""Calls per second with 64 calls open at any time, through us and through the proxies of others.

The client is one of a few lines (`wire.py`, `http_load.py`): the SDK's would be the bottleneck of what it measures.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import get_args

from bench.hop import DIRECT, FASTMCP, OURS, RELAY
from bench.http_load import HttpLoad, SseLoad, http_load, sse_load
from bench.peers import HUB, fastmcp, hub, is_here
from bench.report import Bar, Row
from bench.timing import interleaved
from bench.wire import Era, WireClient
from bench.workbench import FASTMCP_PYTHON, Workbench, free_port, script

AT_ONCE = 64
FASTMCP_BAR = 2.0
HUB_BAR = 1.0
ECHOED = {"text": "hello"}


def measure(bench: Workbench) -> list[Row]:
    return [*_over_stdio(bench), *_over_http(bench)]


def _over_stdio(bench: Workbench) -> list[Row]:
    upstream = script("bare_server", "stdio")
    file = bench.upstreams_file({"echo": {"command": upstream[0], "args": upstream[1:]}}, "throughput-stdio")
    commands = {
        DIRECT: upstream,
        OURS: bench.goat("--upstreams", str(file)),
        RELAY: script("sdk_relay", "stdio", *upstream),
    }
    if FASTMCP_PYTHON.exists():
        commands[FASTMCP] = fastmcp("stdio", *upstream)
    rows: list[Row] = []
    for era in get_args(Era):
        with ExitStack() as stack:
            runs: dict[str, Callable[[int], object]] = {}
            for name, command in commands.items():
                log = bench.root / "throughput.log"
                client = stack.enter_context(WireClient(command, bench.env, era, stderr=log))
                client.open()
                [tool] = [tool["name"] for tool in client.list_tools() if tool["name"].endswith("echo")]
                runs[name] = partial(_through_pipes, client, tool)
            rows += _rows(bench, f"{AT_ONCE} calls at a time, stdio to stdio, {era}", runs)
    return rows


def _over_http(bench: Workbench) -> list[Row]:
    with ExitStack() as stack:

        def serve(command: Callable[[int], list[str]]) -> str:
            port = free_port()
            stack.enter_context(bench.http_server(command(port), port))
            return f"http://127.0.0.1:{port}/mcp"

        upstream = serve(lambda port: script("bare_server", str(port)))
        file = bench.upstreams_file({"echo": {"url": upstream}}, "throughput-http")
        urls = {
            DIRECT: upstream,
            OURS: serve(lambda port: bench.goat_over_http(port, "--upstreams", str(file))),
            RELAY: serve(lambda port: script("sdk_relay", str(port), upstream)),
        }
        if FASTMCP_PYTHON.exists():
            urls[FASTMCP] = serve(lambda port: fastmcp(str(port), upstream))
        of_hub: SseLoad | None = None
        if is_here(HUB):
            entries = {"echo": {"url": upstream}}
            of_hub = sse_load(serve(lambda port: hub(bench, port, entries)), "echo__echo", ECHOED, b"hello")
        rows: list[Row] = []
        for era in get_args(Era):
            runs: dict[str, Callable[[int], object]] = {}
            if of_hub is not None and era == "handshake":
                runs[HUB] = partial(_through_sockets, of_hub)
            for name, url in urls.items():
                load = http_load(url, era, "mcp__echo__echo" if name == OURS else "echo", ECHOED, b"hello")
                runs[name] = partial(_through_sockets, load)
            rows += _rows(bench, f"{AT_ONCE} calls at a time, HTTP to HTTP, {era}", runs)
        return rows


def _through_pipes(client: WireClient, tool: str, total: int) -> None:
    client.call_many(tool, ECHOED, total=total, at_once=AT_ONCE)


def _through_sockets(load: HttpLoad | SseLoad, total: int) -> None:
    asyncio.run(load.run(total, AT_ONCE))


def _rows(bench: Workbench, what: str, runs: Mapping[str, Callable[[int], object]]) -> list[Row]:
    total, rounds = bench.rounds(640, 192), bench.rounds(9, 3)

    def rate(run: Callable[[int], object]) -> float:
        started = time.perf_counter()
        run(total)
        return total / (time.perf_counter() - started)

    for run in runs.values():
        run(AT_ONCE)
    samples = interleaved(
        {name: partial(rate, run) for name, run in runs.items()},
        rounds,
        lambda number: bench.say(f"{what}: round {number + 1} of {rounds}"),
    )
    rates = {name: median(figures) for name, figures in samples.items()}
    bars = {FASTMCP: FASTMCP_BAR, HUB: HUB_BAR}
    return [
        Row(
            what,
            rates[OURS],
            "calls/s",
            name,
            rates[name],
            Bar(rates[OURS] / rates[name], bars[name], "x", is_minimum=True) if name in bars else None,
        )
        for name in rates
        if name != OURS
    ]
