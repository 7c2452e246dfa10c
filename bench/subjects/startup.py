"""Process start to the answer of `tools/list` over stdio, and the memory held then, against a bare SDK server."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import get_args

from bench.first_sight import listed_at_once, warm_the_catalog
from bench.process_cost import cpu_ms, resident_mb, tree_pss_mb
from bench.report import Bar, Row
from bench.servers.small_upstream import TOOL_COUNT
from bench.timing import Samples, interleaved, medians
from bench.wire import Era, WireClient
from bench.workbench import CannotMeasure, Workbench, script

START_BAR = 1.20
MEMORY_BAR = 1.25
UPSTREAM_COUNT = 10
BARE = "bare SDK server"


def measure(bench: Workbench) -> list[Row]:
    upstreams = bench.upstreams_file(
        {
            f"small{number}": {"command": sys.executable, "args": script("small_upstream", f"small{number}")[1:]}
            for number in range(UPSTREAM_COUNT)
        },
        "ten-upstreams",
    )
    # All of them listed: by default so many are found by search instead.
    with_ten = bench.goat("--upstreams", str(upstreams), "--set", "catalog.mode=full")
    built_in = listed_at_once(bench, bench.goat())
    warm_the_catalog(bench, with_ten, built_in + UPSTREAM_COUNT * TOOL_COUNT)
    rows: list[Row] = []
    for era in get_args(Era):
        rows += _measure_era(bench, era, with_ten, built_in)
    return rows


def _measure_era(bench: Workbench, era: Era, with_ten: Sequence[str], built_in: int) -> list[Row]:
    memory: Samples = {}
    pss: Samples = {}
    cpu: Samples = {}

    def start(name: str, command: Sequence[str], tools: int) -> Callable[[], float]:
        def run() -> float:
            started = time.perf_counter()
            with WireClient(command, bench.env, era, stderr=bench.root / "startup.log") as client:
                client.open()
                listed = len(client.list_tools())
                took_ms = (time.perf_counter() - started) * 1000
                if listed != tools:
                    raise CannotMeasure(f"{name} listed {listed} tools, {tools} were expected")
                cpu.setdefault(name, []).append(cpu_ms(client.process.pid))
                memory.setdefault(name, []).append(resident_mb(client.process.pid))
                pss.setdefault(name, []).append(tree_pss_mb(client.process.pid))
            return took_ms

        return run

    ours = {"0 upstreams": built_in, f"{UPSTREAM_COUNT} upstreams": built_in + UPSTREAM_COUNT * TOOL_COUNT}
    commands = dict(zip(ours, (bench.goat(), list(with_ten)), strict=True))
    candidates = {BARE: start(BARE, script("bare_server", "stdio"), 1)}
    candidates |= {name: start(name, commands[name], tools) for name, tools in ours.items()}
    for run in candidates.values():
        run()
    for warm_up in (memory, pss, cpu):
        warm_up.clear()
    rounds = bench.rounds(15, 5)
    took = medians(
        interleaved(candidates, rounds, lambda number: bench.say(f"startup, {era}: round {number + 1} of {rounds}"))
    )
    held, shared, worked = medians(memory), medians(pss), medians(cpu)
    rows: list[Row] = []
    for name in ours:
        start_bar = Bar(took[name] / took[BARE], START_BAR, "x")
        rows.append(Row(f"start to tools/list, {era}, {name}", took[name], "ms", BARE, took[BARE], start_bar))
        rows.append(Row(f"CPU time of that start, {era}, {name}", worked[name], "ms", BARE, worked[BARE]))
        memory_bar = Bar(held[name] / held[BARE], MEMORY_BAR, "x")
        rows.append(Row(f"resident memory, {era}, {name}", held[name], "MB", BARE, held[BARE], memory_bar))
        rows.append(Row(f"PSS with children, {era}, {name}", shared[name], "MB", BARE, shared[BARE]))
    return rows
