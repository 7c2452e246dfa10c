"""A healthy upstream's calls through us beside bad neighbours: how much those delay them (ISO-1).

Where processors are few, thirty busy processes delay everything, also a call that has nothing to do with us. So three
things are told apart, each with the bad ones of the chaos test called all the while:

* a call straight to the healthy server, while a bare host runs the bad ones: what the machine costs,
* a call through us beside bad ones against one through a second goat-mcp whose neighbours are quiet, taken in turns at
  the same time: what we add, and what the bar is about,
* both of them against the calm before: what a user would see on this machine.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.process_cost import cpu_ms, resident_mb
from bench.report import Bar, Row
from bench.timing import Samples, interleaved, timed_ms
from bench.wire import WireClient, WireFailure
from bench.workbench import Workbench
from tests.chaos.neighbourhood import BAD, HEALTHY, entries, over_stdio, web

DELAY_BAR = 1.10
BAD_PAUSE_S = 1.2
"""Longer than a call of one that hangs may take, so that calls do not queue up."""
ROUND_PAUSE_S = 0.005
"""A steady series, not one call after the other: it is delays that count here, not throughput."""
WARM_UP_CALLS = 20
BARE_HOST_START_S = 3.0
GROWTH_BAR_MB = 16.0
"""Flat, but for one of the largest frames that may be under way when it is looked at."""


@dataclass
class Goat:
    """One goat-mcp, its client, and the CPU time it had taken when the series began."""

    client: WireClient
    began_s: float = field(default_factory=time.monotonic)
    began_cpu_ms: float = 0.0
    seen_mb: list[float] = field(default_factory=list[float])

    def begin(self) -> None:
        pid = self.client.process.pid
        self.began_s, self.began_cpu_ms = time.monotonic(), cpu_ms(pid)

    def look(self) -> None:
        """How large it is now."""
        self.seen_mb.append(resident_mb(self.client.process.pid))

    @property
    def cpu_share(self) -> float:
        """Of one processor since the series began, in percent."""
        spent_ms = cpu_ms(self.client.process.pid) - self.began_cpu_ms
        return spent_ms / 10 / (time.monotonic() - self.began_s)

    @property
    def early_mb(self) -> float:
        return median(self.seen_mb[: len(self.seen_mb) // 3 + 1])

    @property
    def late_mb(self) -> float:
        return median(self.seen_mb[-(len(self.seen_mb) // 3 + 1) :])


def measure(bench: Workbench) -> list[Row]:
    with ExitStack() as stack:
        port = stack.enter_context(web())
        mark = bench.folder("chaos")
        entry = over_stdio("healthy", mark)
        direct = stack.enter_context(WireClient([entry["command"], *entry["args"]], bench.env))
        direct.open()
        others = {name: over_stdio("healthy", mark) for name in (HEALTHY, *(f"quiet-{n}" for n in range(len(BAD))))}
        quiet = _goat(stack, bench, "quiet", others)
        calls = {"direct": _call(direct, "t"), "quiet": _call(quiet.client, f"mcp__{HEALTHY}__t")}

        calm = _series(bench, "calm", calls, bench.rounds(600, 150))
        with _bare_host(port, mark):
            bare = _series(bench, "bad ones, without us", {"direct": calls["direct"]}, bench.rounds(900, 150))
        bad = _goat(stack, bench, "bad", entries(port, mark))
        calls["bad"] = _call(bad.client, f"mcp__{HEALTHY}__t")
        for _ in range(WARM_UP_CALLS):
            calls["bad"]()
        _call_bad_ones(bad.client)
        quiet.begin()
        bad.begin()

        def call_bad_ones() -> None:
            bad.look()
            _call_bad_ones(bad.client)

        beside = _series(bench, "bad ones beside us", calls, bench.rounds(1500, 200), call_bad_ones)
        return [
            *(_of_the_machine(bare, calm, share) for share in (50, 95)),
            *(_of_ours(beside, share) for share in (50, 95)),
            *(_in_all(beside, calm, share) for share in (50, 95)),
            Row("CPU of ours in that time, of one processor", bad.cpu_share, "%", "quiet", quiet.cpu_share),
            Row(
                "our memory in the last third of that time",
                bad.late_mb,
                "MB",
                "in the first",
                bad.early_mb,
                Bar(bad.late_mb - bad.early_mb, GROWTH_BAR_MB, "MB"),
            ),
        ]


def _of_the_machine(bare: Samples, calm: Samples, share: int) -> Row:
    loud, still = _percentile(bare["direct"], share), _percentile(calm["direct"], share)
    return Row(
        f"a direct call while bad ones run without us ({loud / still:.2f} x), p{share}", loud, "ms", "calm", still
    )


def _of_ours(beside: Samples, share: int) -> Row:
    bad, quiet = _percentile(beside["bad"], share), _percentile(beside["quiet"], share)
    what = f"a healthy upstream's call beside bad ones, p{share}"
    return Row(what, bad, "ms", "beside quiet ones", quiet, Bar(bad / quiet, DELAY_BAR, "x"))


def _in_all(beside: Samples, calm: Samples, share: int) -> Row:
    bad, still = _percentile(beside["bad"], share), _percentile(calm["quiet"], share)
    return Row(f"the same, machine and all ({bad / still:.2f} x), p{share}", bad, "ms", "calm", still)


def _percentile(took_ms: list[float], share: int) -> float:
    return sorted(took_ms)[len(took_ms) * share // 100]


def _series(
    bench: Workbench,
    what: str,
    calls: Mapping[str, Callable[[], float]],
    rounds: int,
    call_bad_ones: Callable[[], None] = lambda: None,
) -> Samples:
    next_s = 0.0

    def between(number: int) -> None:
        nonlocal next_s
        bench.say(f"a healthy upstream's calls, {what}: round {number + 1} of {rounds}")
        if time.monotonic() > next_s:
            next_s = time.monotonic() + BAD_PAUSE_S
            call_bad_ones()
        time.sleep(ROUND_PAUSE_S)

    return interleaved(calls, rounds, between)


def _call_bad_ones(client: WireClient) -> None:
    for name in BAD:
        client.post(f"mcp__{name}__t", {})


def _call(client: WireClient, tool: str) -> Callable[[], float]:
    def call() -> None:
        if client.call(tool, {"number": 1}) != "healthy 1":
            raise WireFailure("the healthy one answered something else")

    return timed_ms(call)


@contextmanager
def _bare_host(port: int, mark: Path) -> Generator[None]:
    """The bad ones at work, and nothing of ours between them and who calls them."""
    command = [sys.executable, "-m", "bench.servers.bare_host", str(port), str(mark)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as host:
        try:
            time.sleep(BARE_HOST_START_S)
            yield
        finally:
            assert host.stdin is not None
            host.stdin.close()


def _goat(stack: ExitStack, bench: Workbench, name: str, neighbours: Mapping[str, Mapping[str, Any]]) -> Goat:
    file = bench.upstreams_file(neighbours, f"chaos-{name}")
    command = bench.goat("--upstreams", str(file), "--mode", "bypassPermissions", "--set", "limits.calls_per_s=0")
    state = {"GOAT_MCP_STATE_DIR": str(bench.folder(f"state-{name}"))}
    client = stack.enter_context(WireClient(command, bench.env | state, stderr=bench.root / f"chaos-{name}.log"))
    client.open()
    client.list_tools()
    return Goat(client)
