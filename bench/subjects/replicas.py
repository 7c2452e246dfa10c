"""Calls through a real balancer to 1, 2 and 3 replicas: how many a second, what one costs, and that Redis sees none.

Client, balancer, Redis and replicas share this machine: on two cores a second replica has no processor of its own, so
the CPU time of a call says more than the rate.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median, quantiles
from typing import get_args

from bench.http_load import HttpLoad, StartTogether, http_load
from bench.process_cost import cpu_ms
from bench.processes import tree
from bench.report import Bar, Row
from bench.wire import Era
from bench.workbench import CannotMeasure, Workbench
from tests.deploy.balancers import HAPROXY
from tests.deploy.team import NAMES, team
from tests.e2e.conftest import UNASKED, fill
from tests.e2e.goat import TOKEN, Launch, http_goat
from tests.quick_start import use_real_processes

CLIENTS = 32
ALONE = "one server, no balancer, no Redis"
MAX_COMMANDS = 0.05
"""Redis commands of a call that count as none: leases are renewed every few seconds, not evenly."""
IDLE_S = 10.0


@dataclass(frozen=True)
class Subject:
    """What a load is sent to. `commands` reads how many commands Redis has run so far."""

    name: str
    loads: Sequence[HttpLoad]
    goats: Sequence[int]
    balancer: int | None = None
    commands: Callable[[], int] = lambda: 0
    idle_commands_per_s: float = 0.0
    """What leases cost, whether there are calls or not."""


@dataclass(frozen=True)
class Figures:
    """Of one round. CPU times and commands are per call."""

    rate: float
    p95_ms: float
    goat_ms: float
    balancer_ms: float
    commands: float


def measure(bench: Workbench) -> list[Row]:
    if HAPROXY.path() is None:
        raise CannotMeasure("no haproxy here: run `make balancers`")
    use_real_processes(True)
    try:
        return [row for era in get_args(Era) for row in _of_era(bench, era)]
    finally:
        use_real_processes(False)


def _of_era(bench: Workbench, era: Era) -> list[Row]:
    with ExitStack() as stack:
        folder = bench.folder(f"alone-{era}")
        launch = Launch(folder, fill(folder / "workspace"), (*UNASKED, "--set", "limits.calls_per_s=0"))
        goat = stack.enter_context(http_goat(launch))
        subjects = [Subject(ALONE, _loads(goat.url, era, f"{launch.workspace}/notes.md"), [goat.process.pid])]
        for count in range(1, len(NAMES) + 1):
            running = stack.enter_context(team(bench.folder(f"team-{count}-{era}"), HAPROXY, replicas=count))

            def commands(ask: Callable[..., str] = running.redis.ask) -> int:
                return int(re.findall(r"total_commands_processed:(\d+)", ask("INFO", "stats"))[0])

            loads = _loads(running.url, era, f"{running.workspace}/notes.md")
            pids = [replica.process.pid for replica in running.replicas]
            idle = _per_second(commands)
            subjects.append(Subject(_name(count), loads, pids, running.balancer_pid, commands, idle))
        rounds = bench.rounds(7, 2)
        found: dict[str, list[Figures]] = {subject.name: [] for subject in subjects}
        for number in range(rounds + 1):
            for subject in subjects if number % 2 else reversed(subjects):
                figures = _round(subject, bench.rounds(60, 15))
                if number:  # the first one warms up
                    found[subject.name].append(figures)
            bench.say(f"replicas, {era}: round {number} of {rounds}")
    return list(_rows(era, found))


def _per_second(commands: Callable[[], int]) -> float:
    before = commands()
    time.sleep(IDLE_S)
    return (commands() - before) / IDLE_S


def _name(count: int) -> str:
    return f"{count} replica{'s' if count > 1 else ''}"


def _loads(url: str, era: Era, file: str) -> Sequence[HttpLoad]:
    arguments = {"file_path": file}
    return [http_load(url, era, "Read", arguments, b"eats at noon", TOKEN) for _ in range(CLIENTS)]


def _round(subject: Subject, calls_each: int) -> Figures:
    total = calls_each * len(subject.loads)
    commands, goats, balancer = subject.commands(), _cpu_ms(subject.goats), _balancer_ms(subject)
    begun = time.perf_counter()
    try:
        took_ms = asyncio.run(_together(subject.loads, calls_each))
    except ExceptionGroup as failed:
        raise CannotMeasure(f"{subject.name}: {failed.exceptions[0]!r}") from failed
    elapsed_s = time.perf_counter() - begun
    return Figures(
        total / elapsed_s,
        quantiles(took_ms, n=20)[-1],
        (_cpu_ms(subject.goats) - goats) / total,
        (_balancer_ms(subject) - balancer) / total,
        max(0.0, subject.commands() - commands - subject.idle_commands_per_s * elapsed_s) / total,
    )


def _cpu_ms(pids: Sequence[int]) -> float:
    return sum(cpu_ms(process) for pid in pids for process in tree(pid))


def _balancer_ms(subject: Subject) -> float:
    return 0.0 if subject.balancer is None else _cpu_ms([subject.balancer])


async def _together(loads: Sequence[HttpLoad], calls_each: int) -> list[float]:
    start = StartTogether(len(loads))
    async with asyncio.TaskGroup() as group:
        each = [group.create_task(load.run(calls_each + 1, 1, start)) for load in loads]
    return [took_ms for one in each for took_ms in one.result()]


def _rows(era: Era, found: dict[str, list[Figures]]) -> Sequence[Row]:
    def of(name: str, figure: str) -> float:
        return median(getattr(one, figure) for one in found[name])

    rows: list[Row] = []
    for count in range(1, len(NAMES) + 1):
        name = _name(count)
        what = f"{CLIENTS} clients, {name}, {era}"
        rows += [
            Row(f"{what}: calls", of(name, "rate"), "calls/s", ALONE, of(ALONE, "rate")),
            Row(f"{what}: p95", of(name, "p95_ms"), "ms", ALONE, of(ALONE, "p95_ms")),
            Row(f"{what}: CPU of replicas a call", of(name, "goat_ms"), "ms", ALONE, of(ALONE, "goat_ms")),
            Row(f"{what}: CPU of the balancer a call", of(name, "balancer_ms"), "ms"),
        ]
        commands = of(name, "commands")
        rows.append(Row(f"{what}: Redis commands a call", commands, "", bar=Bar(commands, MAX_COMMANDS, "commands")))
    return rows
