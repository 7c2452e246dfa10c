"""`tools/list` of one upstream with 5,000 tools, through us and directly, with a client that costs next to nothing.

Measured with `catalog.mode=full`, where all of them are listed; by default so many are found by search instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import get_args

from bench.first_sight import listed_at_once, warm_the_catalog
from bench.hop import DIRECT, FASTMCP, OURS
from bench.peers import fastmcp
from bench.report import Bar, Row
from bench.timing import interleaved, medians, timed_ms
from bench.wire import Era, WireClient
from bench.workbench import FASTMCP_PYTHON, CannotMeasure, Workbench, script

TOOL_COUNT = 5_000
LIST_BAR = 1.2
PLAIN, AUTO = "the same from a server without libraries", "ours with catalog.mode=auto"


def measure(bench: Workbench) -> list[Row]:
    upstream = script("sdk_tools", "large", str(TOOL_COUNT))
    file = bench.upstreams_file({"large": {"command": upstream[0], "args": upstream[1:]}}, "large-upstream")
    ours = bench.goat("--upstreams", str(file), "--set", "catalog.mode=full")
    warm_the_catalog(bench, ours, listed_at_once(bench, bench.goat()) + TOOL_COUNT)
    rows: list[Row] = []
    for era in get_args(Era):
        commands = {DIRECT: upstream, OURS: ours, AUTO: bench.goat("--upstreams", str(file))}
        if era == "handshake":
            commands[PLAIN] = script("small_upstream", "large", str(TOOL_COUNT))
        if FASTMCP_PYTHON.exists():
            commands[FASTMCP] = fastmcp("stdio", *upstream)
        rows += _rows(bench, era, commands)
    return rows


def _rows(bench: Workbench, era: Era, commands: Mapping[str, Sequence[str]]) -> list[Row]:
    what = f"tools/list of {TOOL_COUNT:,} tools, {era}"
    with ExitStack() as stack:
        lists: dict[str, Callable[[], float]] = {}
        for name, command in commands.items():
            log = bench.root / "large.log"
            client = stack.enter_context(WireClient(command, bench.env, era, stderr=log))
            client.open()
            listed = len(client.list_tools())
            if name != AUTO and listed < TOOL_COUNT:
                raise CannotMeasure(f"{name} listed {listed} tools, {TOOL_COUNT} were expected")
            lists[name] = timed_ms(client.list_tools)
            lists[name]()
        rounds = bench.rounds(25, 5)
        took = medians(interleaved(lists, rounds, lambda number: bench.say(f"{what}: round {number + 1} of {rounds}")))
    bar = Bar(took[OURS] / took[DIRECT], LIST_BAR, "x")
    rows = [Row(f"{what}, p50", took[OURS], "ms", f"{DIRECT}, an SDK server", took[DIRECT], bar)]
    return rows + [
        Row(f"{what}, p50", took[OURS], "ms", name, took[name]) for name in took if name not in (OURS, DIRECT)
    ]
