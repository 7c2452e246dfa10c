"""`python -m bench.soak [--quick]`: 200 clients call three replicas through a balancer for 30 minutes, or 60 seconds.

Half of the clients have a session of the handshake era, half are of 2026-07-28. Every few seconds it looks at each
replica's memory and open files, and at the keys in Redis. Status 1 means that one of these grew, or that a call failed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from bench.http_load import CONNECTING_AT_A_TIME, HttpLoad, http_load
from bench.process_cost import resident_mb
from tests.deploy.balancers import HAPROXY
from tests.deploy.team import Team, team
from tests.e2e.goat import TOKEN
from tests.quick_start import use_real_processes

CLIENTS = 200
CALLS_PER_S = 60.0
"""Of all clients: what two cores do beside other work, so that it is growth that shows and not a queue."""
FULL_S, QUICK_S = 1800.0, 60.0
LOOKS = 60
WARM_UP = 0.2
"""The share of the time in which caches fill, and that is not compared."""
GROWTH_MB = 16.0
"""As in the subject `chaos`: one of the largest frames may be under way when it is looked at."""
GROWTH_FILES = 8.0
GROWTH_KEYS = 5.0


@dataclass
class Series:
    """One figure over time, of one replica or of Redis. `allowed` is the growth that still counts as flat."""

    name: str
    allowed: float
    read: Callable[[], float]
    seen: list[float]

    def look(self) -> None:
        self.seen.append(self.read())

    @property
    def growth(self) -> float:
        """The last third's median less that of the first third after the warm-up."""
        settled = self.seen[int(len(self.seen) * WARM_UP) :]
        third = max(1, len(settled) // 3)
        return median(settled[-third:]) - median(settled[:third])

    @property
    def is_flat(self) -> bool:
        return self.growth <= self.allowed


@dataclass
class Calls:
    """What came of the calls."""

    took_ms: list[float]
    failures: list[str]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_S:.0f} seconds instead of {FULL_S:.0f}")
    parser.add_argument("--seconds", type=float, help="another time, at most that of a full run")
    options = parser.parse_args(arguments)
    lasts_s = min(FULL_S, options.seconds or (QUICK_S if options.quick else FULL_S))
    if HAPROXY.path() is None:
        print("no haproxy here: run `make balancers`", file=sys.stderr)
        return 2
    use_real_processes(True)
    with tempfile.TemporaryDirectory(prefix="goat-mcp-soak-") as folder, team(Path(folder), HAPROXY) as running:
        series = series_of(running)
        calls = asyncio.run(soak(running, lasts_s, series))
    return report(lasts_s, calls, series)


def series_of(running: Team) -> list[Series]:
    found: list[Series] = []
    for number, goat in enumerate(running.replicas, 1):
        pid = goat.process.pid
        found.append(Series(f"memory of replica {number}, MB", GROWTH_MB, lambda pid=pid: resident_mb(pid), []))
        found.append(Series(f"open files of replica {number}", GROWTH_FILES, lambda pid=pid: open_files(pid), []))
    found.append(Series("keys in Redis", GROWTH_KEYS, lambda: float(running.redis.ask("DBSIZE").strip(":\r\n")), []))
    return found


def open_files(pid: int) -> float:
    return float(len(os.listdir(f"/proc/{pid}/fd")))  # noqa: PTH208  # names of open files change while they are listed


async def soak(running: Team, lasts_s: float, series: Sequence[Series]) -> Calls:
    """Call for so long."""
    calls = Calls([], [])
    ends_at_s = time.monotonic() + lasts_s
    pause_s = CLIENTS / CALLS_PER_S
    arguments = {"file_path": str(running.workspace / "notes.md")}

    def load(number: int) -> HttpLoad:
        return http_load(
            running.url, "modern" if number % 2 else "handshake", "Read", arguments, b"eats at noon", TOKEN
        )

    opening = asyncio.Semaphore(CONNECTING_AT_A_TIME)

    async def client(number: int) -> None:
        async with opening:
            prepared = await asyncio.to_thread(load, number)
        await asyncio.sleep(pause_s * number / CLIENTS)
        while time.monotonic() < ends_at_s:
            next_s = time.monotonic() + pause_s
            try:
                calls.took_ms += await prepared.run(1, 1)
            except (OSError, EOFError, TimeoutError, ExceptionGroup) as problem:
                calls.failures.append(repr(problem))
            await asyncio.sleep(max(0.0, next_s - time.monotonic()))

    async def look() -> None:
        while time.monotonic() < ends_at_s:
            for one in series:
                await asyncio.to_thread(one.look)
            await asyncio.sleep(lasts_s / LOOKS)

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        for number in range(CLIENTS):
            group.create_task(client(number))
    return calls


def report(lasts_s: float, calls: Calls, series: Sequence[Series]) -> int:
    """Print what was seen. The exit status."""
    p95_ms = quantiles(calls.took_ms, n=20)[-1] if len(calls.took_ms) > 1 else float("nan")
    print(f"{len(calls.took_ms)} calls of {CLIENTS} clients in {lasts_s:.0f} s, p95 {p95_ms:.1f} ms; ", end="")
    print(f"{len(calls.failures)} failed{': ' + calls.failures[0] if calls.failures else ''}")
    for one in series:
        verdict = "flat" if one.is_flat else "GREW"
        print(f"{one.name}: {one.seen[0]:.0f} at first, {one.seen[-1]:.0f} at last, {one.growth:+.1f}: {verdict}")
    return 0 if calls.took_ms and not calls.failures and all(one.is_flat for one in series) else 1


if __name__ == "__main__":
    sys.exit(main())
