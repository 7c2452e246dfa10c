"""A healthy upstream's calls through us with quiet neighbours against bad ones: how much those delay them (ISO-1).

Two goat-mcp processes, each with the same healthy upstream: beside one live as many healthy others, beside the other
the bad ones of the chaos test, which are called all the while. The CPU time that we spend on bad neighbours is measured
too: where processors are scarce, that is what a delay is made of.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from bench.process_cost import cpu_ms, resident_mb
from bench.report import Bar, Row
from bench.timing import interleaved, timed_ms
from bench.wire import WireClient, WireFailure
from bench.workbench import Workbench
from tests.chaos.neighbourhood import BAD, HEALTHY, entries, over_stdio, web

DELAY_BAR = 1.10
BAD_PAUSE_S = 1.2
"""Longer than a call of one that hangs may take, so that calls do not queue up."""
WHAT = "a healthy upstream's call beside bad ones"


@dataclass
class Goat:
    """One goat-mcp, its client, and the CPU time it had taken when the series began."""

    client: WireClient
    began_s: float = field(default_factory=time.monotonic)
    began_cpu_ms: float = 0.0
    began_mb: float = 0.0

    def begin(self) -> None:
        pid = self.client.process.pid
        self.began_s, self.began_cpu_ms, self.began_mb = time.monotonic(), cpu_ms(pid), resident_mb(pid)

    @property
    def cpu_share(self) -> float:
        """Of one processor since the series began, in percent."""
        spent_ms = cpu_ms(self.client.process.pid) - self.began_cpu_ms
        return spent_ms / 10 / (time.monotonic() - self.began_s)

    @property
    def grown_mb(self) -> float:
        return resident_mb(self.client.process.pid) - self.began_mb


def measure(bench: Workbench) -> list[Row]:
    with ExitStack() as stack:
        port = stack.enter_context(web())
        mark = bench.folder("chaos")
        beside = entries(port, mark)
        quiet = {name: over_stdio("healthy", mark) for name in (HEALTHY, *(f"quiet-{n}" for n in range(len(BAD))))}
        goats = {
            name: Goat(stack.enter_context(_client(bench, name, file)))
            for name, file in (("quiet", quiet), ("bad", beside))
        }
        for goat in goats.values():
            goat.client.open()
            goat.client.list_tools()
        calls: dict[str, Callable[[], float]] = {}
        for name, goat in goats.items():
            calls[name] = timed_ms(_call(goat.client))
            for _ in range(20):
                calls[name]()
            goat.begin()
        rounds = bench.rounds(1500, 200)
        next_s = 0.0

        def between(number: int) -> None:
            nonlocal next_s
            bench.say(f"{WHAT}: round {number + 1} of {rounds}")
            if time.monotonic() > next_s:
                next_s = time.monotonic() + BAD_PAUSE_S
                for name in BAD:
                    goats["bad"].client.post(f"mcp__{name}__t", {})
            # A steady series, not one after the other: it is delays that count here, not throughput.
            time.sleep(0.005)

        took = interleaved(calls, rounds, between)
        return [
            *(_delay(took, share) for share in (50, 95)),
            Row(
                "CPU of ours in that time, of one processor",
                goats["bad"].cpu_share,
                "%",
                "quiet",
                goats["quiet"].cpu_share,
            ),
            Row("growth of our memory in that time", goats["bad"].grown_mb, "MB", "quiet", goats["quiet"].grown_mb),
        ]


def _delay(took: dict[str, list[float]], share: int) -> Row:
    bad, quiet = (sorted(took[name])[len(took[name]) * share // 100] for name in ("bad", "quiet"))
    return Row(f"{WHAT}, p{share}", bad, "ms", "beside quiet ones", quiet, Bar(bad / quiet, DELAY_BAR, "x"))


def _call(client: WireClient) -> Callable[[], object]:
    def call() -> None:
        if client.call(f"mcp__{HEALTHY}__t", {"number": 1}) != "healthy 1":
            raise WireFailure("the healthy one answered something else")

    return call


def _client(bench: Workbench, name: str, neighbours: Mapping[str, Mapping[str, Any]]) -> WireClient:
    file = bench.upstreams_file(neighbours, f"chaos-{name}")
    command = bench.goat("--upstreams", str(file), "--mode", "bypassPermissions", "--set", "limits.calls_per_s=0")
    state = {"GOAT_MCP_STATE_DIR": str(bench.folder(f"state-{name}"))}
    return WireClient(command, bench.env | state, stderr=bench.root / f"chaos-{name}.log")
