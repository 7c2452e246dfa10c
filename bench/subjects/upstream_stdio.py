"""A call to an upstream through us, stdio on both sides, against the same upstream called directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import get_args

import anyio

from bench.hop import DIRECT, FASTMCP, OURS, RELAY, added, measure_added
from bench.peers import fastmcp
from bench.report import Row
from bench.timing import interleaved, medians, timed_ms
from bench.wire import Era, WireClient
from bench.workbench import FASTMCP_PYTHON, Workbench, script

ADDED_BAR = 1.5
FASTMCP_BAR = 0.5
WHAT = "upstream call stdio to stdio"


def measure(bench: Workbench) -> list[Row]:
    upstream = script("bare_server", "stdio")
    file = bench.upstreams_file({"echo": {"command": upstream[0], "args": upstream[1:]}}, "echo-stdio")
    targets: dict[str, list[str]] = {
        DIRECT: upstream,
        OURS: bench.goat("--upstreams", str(file)),
        RELAY: script("sdk_relay", "stdio", *upstream),
    }
    if FASTMCP_PYTHON.exists():
        targets[FASTMCP] = fastmcp("stdio", *upstream)
    rows: list[Row] = []
    for era in get_args(Era):
        rows += anyio.run(measure_added, bench, f"{WHAT}, {era}", era, targets, ADDED_BAR, FASTMCP_BAR)
        rows.append(_raw_row(bench, era, targets))
    return rows


def _raw_row(bench: Workbench, era: Era, targets: Mapping[str, list[str]]) -> Row:
    """The same with a client that costs next to nothing, so that the hop stands out."""
    with (
        WireClient(targets[DIRECT], bench.env, era) as direct,
        WireClient(targets[OURS], bench.env, era, stderr=bench.root / "upstream.log") as ours,
    ):
        calls: dict[str, Callable[[], float]] = {}
        for name, client in ((DIRECT, direct), (OURS, ours)):
            client.open()
            [tool] = [tool["name"] for tool in client.list_tools() if tool["name"].endswith("echo")]
            calls[name] = timed_ms(partial(client.call, tool, {"text": "hello"}))
            for _ in range(5):
                calls[name]()
        rounds = bench.rounds(600, 100)
        bench.say(f"{WHAT}, {era}, raw frames: {rounds} rounds")
        took = medians(interleaved(calls, rounds, lambda number: None))
    against = f"{DIRECT}, adds {added(took[OURS], took[DIRECT]):.2f} x:"
    return Row(f"{WHAT}, {era}, raw frames, p50", took[OURS], "ms", against, took[DIRECT])
