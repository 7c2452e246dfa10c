"""How a start, the first list and one call grow with the number of upstreams: 1, 10 and 50 of them with 20 tools each.

Over stdio, handshake opening, all tools listed. Ours have the tools in the catalog on disk; FastMCP's proxy has none:
its first list starts every upstream. mcp-hub, which does not serve over stdio, is in `cold_start`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median

from bench.first_sight import listed_at_once, warm_the_catalog
from bench.hop import FASTMCP
from bench.peers import fastmcp
from bench.processes import started_processes
from bench.report import Row
from bench.resident import warm_resident
from bench.servers.small_upstream import TOOL_COUNT
from bench.timing import interleaved
from bench.wire import WireClient
from bench.workbench import FASTMCP_PYTHON, CannotMeasure, Workbench, script

COUNTS = (1, 10, 50)
FULL = ("--set", "catalog.mode=full")
RESIDENT, ALONE = "ours, resident", "ours, alone"
OPENED, LISTED, FIRST_CALL, CALL = "start to the opening's answer", "to the full list", "first call", "call, p50"
SECONDS = "seconds"
STEPS = (OPENED, LISTED, FIRST_CALL, CALL)
CALLS, CALLS_S = 50, 5.0
"""So many calls, fewer if they take longer than that."""
SLOW_S = 20.0
"""Who needs longer for a round is measured once: a round says it."""
Took = dict[str, list[float]]


def measure(bench: Workbench) -> list[Row]:
    built_in = listed_at_once(bench, bench.goat(*FULL))
    everything = _upstreams(bench, max(COUNTS))
    warm_the_catalog(bench, _goat(bench, everything), built_in + max(COUNTS) * TOOL_COUNT)
    rows: list[Row] = []
    with started_processes() as started:
        warm_resident(bench, bench.goat(), started)
        for count in COUNTS:
            rows += _rows(bench, count, built_in)
    return rows


def _upstreams(bench: Workbench, count: int) -> str:
    entries = {
        f"small{number}": {"command": sys.executable, "args": script("small_upstream", f"small{number}")[1:]}
        for number in range(count)
    }
    return str(bench.upstreams_file(entries, f"growth-{count}"))


def _goat(bench: Workbench, upstreams: str) -> list[str]:
    return bench.goat("--upstreams", upstreams, *FULL)


def _rows(bench: Workbench, count: int, built_in: int) -> list[Row]:
    upstreams = _upstreams(bench, count)
    tools = count * TOOL_COUNT
    took: dict[str, Took] = {name: {step: [] for step in (*STEPS, SECONDS)} for name in (RESIDENT, ALONE)}
    runs: dict[str, Callable[[], float]] = {
        name: partial(_run, bench, _goat(bench, upstreams), env, built_in + tools, took[name])
        for name, env in ((RESIDENT, bench.resident_env), (ALONE, bench.env))
    }
    if FASTMCP_PYTHON.exists():
        took[FASTMCP] = {step: [] for step in (*STEPS, SECONDS)}
        runs[FASTMCP] = partial(_run, bench, fastmcp("stdio", upstreams), bench.env, tools, took[FASTMCP])
    rounds = bench.rounds(7, 2)
    interleaved(runs, rounds, lambda number: bench.say(f"{count} upstreams: round {number + 1} of {rounds}"))
    ours = took[RESIDENT]
    return [
        Row(f"{count} upstreams, {step}", median(ours[step]), "ms", name, median(theirs[step]))
        for step in STEPS
        for name, theirs in took.items()
        if name != RESIDENT
    ]


def _run(bench: Workbench, command: Sequence[str], env: Mapping[str, str], tools: int, took: Took) -> float:
    """Returns how many seconds the last run took."""
    if took[SECONDS] and took[SECONDS][-1] > SLOW_S:
        return took[SECONDS][-1]
    started = time.perf_counter()

    def note(step: str, since: float) -> None:
        took[step].append((time.perf_counter() - since) * 1000)

    with WireClient(command, env, stderr=bench.root / "growth.log") as client:
        client.open()
        note(OPENED, started)
        listed = [tool["name"] for tool in client.list_tools()]
        note(LISTED, started)
        if len(listed) != tools:
            raise CannotMeasure(f"{command[0]} listed {len(listed)} tools, {tools} were expected")
        [tool] = [name for name in listed if name.endswith("small0_task_0")]
        call = partial(client.call, tool, {"title": "hello"})
        before = time.perf_counter()
        call()
        note(FIRST_CALL, before)
        single: list[float] = []
        while len(single) < CALLS and sum(single) < CALLS_S * 1000:
            before = time.perf_counter()
            call()
            single.append((time.perf_counter() - before) * 1000)
        took[CALL].append(median(single))
        took[SECONDS].append(time.perf_counter() - started)
    return took[SECONDS][-1]
