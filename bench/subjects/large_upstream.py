"""`tools/list` of one upstream with 1,000 and 5,000 tools, through us, through mcp-hub and directly, with clients that
cost next to nothing.

Measured with `catalog.mode=full`, where all of them are listed; by default so many are found by search instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import get_args

from bench.first_sight import listed_at_once, warm_the_catalog
from bench.hop import DIRECT, FASTMCP, OURS
from bench.peers import HUB, fastmcp, hub, is_here
from bench.report import Bar, Row
from bench.sse import LOOK_AGAIN_S, sse_client
from bench.timing import interleaved, medians, timed_ms
from bench.wire import Era, WireClient
from bench.workbench import FASTMCP_PYTHON, CannotMeasure, Workbench, free_port, script

TOOL_COUNTS = (1_000, 5_000)
LIST_BAR = 1.2
HUB_TIMEOUT_S = 60.0
PLAIN, AUTO = "the same from a server without libraries", "ours with catalog.mode=auto"


def measure(bench: Workbench) -> list[Row]:
    built_in = listed_at_once(bench, bench.goat())
    return [row for count in TOOL_COUNTS for row in _of_count(bench, count, built_in)]


def _of_count(bench: Workbench, count: int, built_in: int) -> list[Row]:
    upstream = script("sdk_tools", "large", str(count))
    entries = {"large": {"command": upstream[0], "args": upstream[1:]}}
    file = bench.upstreams_file(entries, f"large-upstream-{count}")
    ours = bench.goat("--upstreams", str(file), "--set", "catalog.mode=full")
    warm_the_catalog(bench, ours, built_in + count)
    rows: list[Row] = []
    for era in get_args(Era):
        commands = {DIRECT: upstream, OURS: ours, AUTO: bench.goat("--upstreams", str(file))}
        if era == "handshake":
            commands[PLAIN] = script("small_upstream", "large", str(count))
        if FASTMCP_PYTHON.exists():
            commands[FASTMCP] = fastmcp("stdio", *upstream)
        with ExitStack() as stack:
            lists = {name: _over_stdio(stack, bench, era, count, name, command) for name, command in commands.items()}
            if era == "handshake" and is_here(HUB):
                lists[HUB] = _of_hub(stack, bench, count, entries)
            rows += _rows(bench, f"tools/list of {count:,} tools, {era}", lists)
    return rows


def _over_stdio(
    stack: ExitStack, bench: Workbench, era: Era, count: int, name: str, command: Sequence[str]
) -> Callable[[], object]:
    client = stack.enter_context(WireClient(command, bench.env, era, stderr=bench.root / "large.log"))
    client.open()
    listed = len(client.list_tools())
    if name != AUTO and listed < count:
        raise CannotMeasure(f"{name} listed {listed} tools, {count} were expected")
    return client.list_tools


def _of_hub(
    stack: ExitStack, bench: Workbench, count: int, entries: Mapping[str, Mapping[str, object]]
) -> Callable[[], object]:
    port = free_port()
    process = stack.enter_context(bench.http_server(hub(bench, port, entries), port))
    client = sse_client(port, process)
    stack.callback(client.close)
    deadline = time.monotonic() + HUB_TIMEOUT_S
    while (listed := len(client.list_tools())) < count:
        if time.monotonic() > deadline:
            raise CannotMeasure(f"{HUB} listed {listed} tools, {count} were expected")
        time.sleep(LOOK_AGAIN_S)
    return client.list_tools


def _rows(bench: Workbench, what: str, lists: Mapping[str, Callable[[], object]]) -> list[Row]:
    timed = {name: timed_ms(list_tools) for name, list_tools in lists.items()}
    for once in timed.values():
        once()
    rounds = bench.rounds(25, 5)
    took = medians(interleaved(timed, rounds, lambda number: bench.say(f"{what}: round {number + 1} of {rounds}")))
    bar = Bar(took[OURS] / took[DIRECT], LIST_BAR, "x")
    rows = [Row(f"{what}, p50", took[OURS], "ms", f"{DIRECT}, an SDK server", took[DIRECT], bar)]
    return rows + [
        Row(f"{what}, p50", took[OURS], "ms", name, took[name]) for name in took if name not in (OURS, DIRECT)
    ]
