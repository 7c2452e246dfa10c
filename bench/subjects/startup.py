"""Process start to the answer of `tools/list` over stdio, and what is held and worked until then, against a bare SDK
server and servers of others: with the resident process, which is warm, and without it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import get_args

from bench.first_sight import listed_at_once, warm_the_catalog
from bench.peers import CLAUDE, FILESYSTEM, bare_fastmcp, claude, claude_env, filesystem, is_here
from bench.process_cost import cpu_ms, resident_mb, tree_pss_mb
from bench.processes import Started, started_processes
from bench.report import Bar, Row
from bench.resident import NewServers, warm_resident
from bench.servers.small_upstream import TOOL_COUNT
from bench.timing import Samples, interleaved, medians
from bench.wire import Era, WireClient
from bench.workbench import FASTMCP_PYTHON, CannotMeasure, Workbench, script

RESIDENT_BAR = 0.12
ALONE_BAR = 1.15
MEMORY_BAR = 1.25
UPSTREAM_COUNT = 10
BARE = "bare SDK server"
FASTMCP_SERVER = "bare FastMCP server"
NONE, TEN = "0 upstreams", f"{UPSTREAM_COUNT} upstreams"


@dataclass(frozen=True)
class Candidate:
    """A server to start, and how many tools it is to list."""

    command: Sequence[str]
    env: Mapping[str, str]
    tools: int | None = None


@dataclass
class Costs:
    """What starts cost besides time."""

    cpu: Samples = field(default_factory=Samples)
    memory: Samples = field(default_factory=Samples)
    pss: Samples = field(default_factory=Samples)
    served_alone: int = 0
    """Starts that the resident process did not take."""


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
    all_tools = built_in + UPSTREAM_COUNT * TOOL_COUNT
    warm_the_catalog(bench, with_ten, all_tools)
    rows: list[Row] = []
    with started_processes() as started:
        warm_resident(bench, bench.goat(), started)
        for era in get_args(Era):
            ours = {
                f"{NONE}, resident": Candidate(bench.goat(), bench.resident_env, built_in),
                f"{TEN}, resident": Candidate(with_ten, bench.resident_env, all_tools),
                f"{NONE}, alone": Candidate(bench.goat(), bench.env, built_in),
                f"{TEN}, alone": Candidate(with_ten, bench.env, all_tools),
            }
            rows += _measure_era(bench, era, ours, _peers(bench, era), started)
    return rows


def _peers(bench: Workbench, era: Era) -> Mapping[str, Candidate]:
    """Those that know the opening, the bare SDK server first."""
    found = {BARE: Candidate(script("bare_server", "stdio"), bench.env, 1)}
    if FASTMCP_PYTHON.exists():
        found[FASTMCP_SERVER] = Candidate(bare_fastmcp(), bench.env, 1)
    if era == "handshake" and is_here(FILESYSTEM):
        found[FILESYSTEM] = Candidate(filesystem(bench.folder("workspace")), bench.env)
    if era == "handshake" and is_here(CLAUDE):
        found[CLAUDE] = Candidate(claude(), claude_env(bench))
    return found


def _measure_era(
    bench: Workbench, era: Era, ours: Mapping[str, Candidate], peers: Mapping[str, Candidate], started: Started
) -> list[Row]:
    costs = Costs()
    starts: dict[str, Callable[[], float]] = {}
    for name, candidate in {**peers, **ours}.items():
        _start(bench, era, name, candidate, Costs(), started)
        starts[name] = partial(_start, bench, era, name, candidate, costs, started)
    rounds = bench.rounds(15, 5)
    took = medians(
        interleaved(starts, rounds, lambda number: bench.say(f"startup, {era}: round {number + 1} of {rounds}"))
    )
    cpu, memory, pss = medians(costs.cpu), medians(costs.memory), medians(costs.pss)
    rows: list[Row] = []
    for name in ours:
        bar = Bar(took[name] / took[BARE], RESIDENT_BAR if name.endswith("resident") else ALONE_BAR, "x")
        rows.append(Row(f"start to tools/list, {era}, {name}", took[name], "ms", BARE, took[BARE], bar))
        rows.append(Row(f"CPU time of that start, {era}, {name}", cpu[name], "ms", BARE, cpu[BARE]))
    fastest = min(peers, key=lambda name: took[name])
    for name in (f"{NONE}, resident", f"{TEN}, resident"):
        bar = Bar(took[name] / took[fastest], 1.0, "x")
        what = f"start to tools/list, {era}, {name}, and the fastest of others"
        rows.append(Row(what, took[name], "ms", fastest, took[fastest], bar))
    rows += [
        Row(f"start to tools/list, {era}, {name}", took[name], "ms", BARE, took[BARE]) for name in peers if name != BARE
    ]
    rows.append(Row(f"starts of {2 * rounds} that the resident process did not take, {era}", costs.served_alone, ""))
    for name in (f"{NONE}, alone", f"{TEN}, alone"):
        memory_bar = Bar(memory[name] / memory[BARE], MEMORY_BAR, "x")
        rows.append(Row(f"resident memory, {era}, {name}", memory[name], "MB", BARE, memory[BARE], memory_bar))
        rows.append(Row(f"PSS with children, {era}, {name}", pss[name], "MB", BARE, pss[BARE]))
    return rows


def _start(bench: Workbench, era: Era, name: str, candidate: Candidate, costs: Costs, started: Started) -> float:
    """With a resident process, its own work counts, too."""
    servers = NewServers(started) if candidate.env == bench.resident_env else None
    log, folder = bench.root / "startup.log", bench.folder("workspace")
    begun = time.perf_counter()
    with WireClient(candidate.command, candidate.env, era, stderr=log, cwd=folder) as client:
        client.open()
        listed = len(client.list_tools())
        took_ms = (time.perf_counter() - begun) * 1000
        if listed != (candidate.tools or listed):
            raise CannotMeasure(f"{name} listed {listed} tools, {candidate.tools} were expected")
        worked = cpu_ms(client.process.pid)
        if servers is not None:
            worked += servers.resident_worked_ms()
            if (server := servers.next()) is not None:
                worked += cpu_ms(server)
            else:
                costs.served_alone += 1
        costs.cpu.setdefault(name, []).append(worked)
        costs.memory.setdefault(name, []).append(resident_mb(client.process.pid))
        costs.pss.setdefault(name, []).append(tree_pss_mb(client.process.pid))
    return took_ms
