"""50 upstreams of 20 tools: what they add to the first list of a warm start, and to a call of one of them.

Measured with `catalog.mode=full`, where all of their tools are listed; by default so many are found by search instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import get_args

from bench.first_sight import listed_at_once, warm_the_catalog
from bench.process_cost import cpu_ms
from bench.report import Bar, Row
from bench.servers.small_upstream import TOOL_COUNT
from bench.timing import Samples, interleaved, medians, timed_ms
from bench.wire import Era, WireClient
from bench.workbench import CannotMeasure, Workbench, script

UPSTREAM_COUNT = 50
FIRST_LIST_BAR_MS = 50.0
CALL_BAR = 1.10
"""Our reading of "independent of the number of upstreams"."""
ALL = f"{UPSTREAM_COUNT} upstreams x {TOOL_COUNT} tools"
FULL = ("--set", "catalog.mode=full")


def measure(bench: Workbench) -> list[Row]:
    one, many = _upstreams(bench, 1), _upstreams(bench, UPSTREAM_COUNT)
    built_in = listed_at_once(bench, bench.goat())
    warm_the_catalog(bench, bench.goat(*many, *FULL), built_in + UPSTREAM_COUNT * TOOL_COUNT)
    rows: list[Row] = []
    for era in get_args(Era):
        rows += _first_list(bench, era, many, built_in)
        rows.append(_call(bench, era, one, many))
    return rows


def _upstreams(bench: Workbench, count: int) -> Sequence[str]:
    entries = {
        f"small{number}": {"command": sys.executable, "args": script("small_upstream", f"small{number}")[1:]}
        for number in range(count)
    }
    return ("--upstreams", str(bench.upstreams_file(entries, f"{count}-upstreams")))


def _first_list(bench: Workbench, era: Era, many: Sequence[str], built_in: int) -> list[Row]:
    """Process start to the answer of `tools/list`, with all of them and with none. Their tools are on disk."""

    worked: Samples = {}

    def start(name: str, command: Sequence[str], tools: int | None) -> float:
        started = time.perf_counter()
        with WireClient(command, bench.env, era, stderr=bench.root / "startup.log") as client:
            client.open()
            listed = len(client.list_tools())
            took_ms = (time.perf_counter() - started) * 1000
            if tools is not None and listed != tools:
                raise CannotMeasure(f"{name} listed {listed} tools, {tools} were expected")
            worked.setdefault(name, []).append(cpu_ms(client.process.pid))
        return took_ms

    none, full, auto = "0 upstreams", f"{ALL}, all listed", f"{ALL}, catalog.mode=auto"
    starts: Mapping[str, Callable[[], float]] = {
        none: partial(start, none, bench.goat(*FULL), built_in),
        full: partial(start, full, bench.goat(*many, *FULL), built_in + UPSTREAM_COUNT * TOOL_COUNT),
        auto: partial(start, auto, bench.goat(*many), None),
    }
    for run in starts.values():
        run()
    worked.clear()
    rounds = bench.rounds(15, 5)
    samples = interleaved(
        starts, rounds, lambda number: bench.say(f"first list, {ALL}, {era}: round {number + 1} of {rounds}")
    )
    rows: list[Row] = []
    for name in (full, auto):
        # Pair by pair: the two starts of a round had the same moment of the machine.
        more_ms = median(with_all - without for with_all, without in zip(samples[name], samples[none], strict=True))
        bar = Bar(more_ms, FIRST_LIST_BAR_MS, "ms more") if name == full else None
        rows.append(
            Row(f"start to tools/list, {era}, {name}", median(samples[name]), "ms", none, median(samples[none]), bar)
        )
        rows.append(
            Row(f"CPU time of that start, {era}, {name}", median(worked[name]), "ms", none, median(worked[none]))
        )
    return rows


def _call(bench: Workbench, era: Era, one: Sequence[str], many: Sequence[str]) -> Row:
    """The same call of the same upstream, which is alone in one gateway and among 50 running ones in the other."""
    log = bench.root / "upstream.log"
    with (
        WireClient(bench.goat(*one, *FULL), bench.env, era, stderr=log) as alone,
        WireClient(bench.goat(*many, *FULL), bench.env, era, stderr=log) as among_many,
    ):
        calls: dict[str, Callable[[], float]] = {}
        for name, client, count in (("1 upstream", alone, 1), (ALL, among_many, UPSTREAM_COUNT)):
            client.open()
            client.list_tools()
            for number in range(count):
                client.call(f"mcp__small{number}__small{number}_task_0", {"title": "hello"})
            calls[name] = timed_ms(partial(client.call, "mcp__small0__small0_task_0", {"title": "hello"}))
            for _ in range(5):
                calls[name]()
        rounds = bench.rounds(600, 100)
        bench.say(f"a call among {ALL}, {era}: {rounds} rounds")
        took = medians(interleaved(calls, rounds, lambda number: None))
    bar = Bar(took[ALL] / took["1 upstream"], CALL_BAR, "x")
    return Row(f"call of one of {ALL}, {era}, p50", took[ALL], "ms", "1 upstream", took["1 upstream"], bar)
