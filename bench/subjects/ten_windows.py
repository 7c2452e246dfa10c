"""What windows of a host cost beside each other: the memory of a second one, and ten with the same ten upstreams, each
of which runs once for all (`share: true`) or once for every window.

The windows are open in ten projects. The upstreams are what most are that run in Python: one tool, and the SDK.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.process_cost import pss_mb, unshared_mb
from bench.processes import Started, command, is_resident, started_processes
from bench.report import Bar, Row
from bench.resident import NewServers, warm_resident
from bench.timing import Samples, interleaved, medians
from bench.wire import WireClient
from bench.workbench import CannotMeasure, Workbench, script

SECOND_WINDOW_BAR_MB = 15.0
PROCESSES_BAR = 35
MEMORY_BAR = 0.25
WINDOWS, UPSTREAMS = 10, 10
CALM_S, CALM_TIMEOUT_S = 1.0, 20.0
LISTED, CALLED = "after its first list", "after 20 calls"
ALONE = "without the resident process"
SHARED, RESIDENT, APART = "shared", "resident process, not shared", "no resident process, not shared"
LAUNCHERS, SERVERS, SERVED, OTHERS = "launchers", "resident process, sessions, broker", "upstreams", "guards and others"
KINDS = (LAUNCHERS, SERVERS, SERVED, OTHERS)


def measure(bench: Workbench) -> list[Row]:
    return [*_second_window(bench), *_ten_windows(bench)]


def _second_window(bench: Workbench) -> list[Row]:
    text = bench.folder("workspace") / "note.txt"
    text.write_text("a line\n" * 50)

    ours, alone = _held_by_second(bench, text, is_alone=False), _held_by_second(bench, text, is_alone=True)
    return [
        Row(
            f"private memory of a second window, {when}",
            ours[when],
            "MB",
            ALONE,
            alone[when],
            Bar(ours[when], SECOND_WINDOW_BAR_MB, "MB"),
        )
        for when in (LISTED, CALLED)
    ]


def _held_by_second(bench: Workbench, text: Path, *, is_alone: bool) -> Mapping[str, float]:
    env = bench.env if is_alone else bench.resident_env
    held: Samples = {LISTED: [], CALLED: []}
    with started_processes() as started:
        if not is_alone:
            warm_resident(bench, bench.goat(), started)
        with _window(bench, bench.goat(), env) as first:
            _use(first, text)
            for number in range(bench.rounds(5, 2)):
                bench.say(f"a second window, {'alone' if is_alone else 'resident'}: round {number + 1}")
                servers = NewServers(started)
                with _window(bench, bench.goat(), env) as second:
                    second.open()
                    second.list_tools()
                    pids = [second.process.pid]
                    if not is_alone:
                        if (server := servers.next()) is None:
                            raise CannotMeasure("the resident process did not take the second window")
                        pids.append(server)
                    held[LISTED].append(sum(map(unshared_mb, pids)))
                    _use(second, text)
                    held[CALLED].append(sum(map(unshared_mb, pids)))
    return medians(held)


def _use(client: WireClient, text: Path) -> None:
    client.open()
    for _ in range(10):
        client.call("Read", {"file_path": str(text)})
        client.call("Glob", {"pattern": "**/*.txt"})


@dataclass(frozen=True)
class Counted:
    """What ten windows consist of."""

    kinds: Mapping[str, int]
    pss_mb: float


def _ten_windows(bench: Workbench) -> list[Row]:
    counted: dict[str, list[Counted]] = {SHARED: [], RESIDENT: [], APART: []}
    runs: dict[str, Callable[[], float]] = {name: partial(_count, bench, name, into) for name, into in counted.items()}
    rounds = bench.rounds(2, 1)
    interleaved(runs, rounds, lambda number: bench.say(f"{WINDOWS} windows: round {number + 1} of {rounds}"))
    found = {
        name: medians(
            {
                **{kind: [float(one.kinds[kind]) for one in every] for kind in KINDS},
                "processes": [float(sum(one.kinds.values())) for one in every],
                "MB": [one.pss_mb for one in every],
            }
        )
        for name, every in counted.items()
    }
    shared, apart = found[SHARED], found[APART]
    what = f"{WINDOWS} windows, {UPSTREAMS} shared upstreams"
    processes, memory = shared["processes"], shared["MB"]
    return [
        Row(f"{what}: processes", processes, "", APART, apart["processes"], Bar(processes, PROCESSES_BAR, "processes")),
        *(Row(f"{what}: of these {kind}", shared[kind], "", APART, apart[kind]) for kind in KINDS),
        Row(f"{what}: PSS of all", memory, "MB", APART, apart["MB"], Bar(memory / apart["MB"], MEMORY_BAR, "x")),
        Row(f"{what}: PSS of all", memory, "MB", RESIDENT, found[RESIDENT]["MB"]),
    ]


def _count(bench: Workbench, name: str, into: list[Counted]) -> float:
    entries: dict[str, Mapping[str, object]] = {}
    for number in range(UPSTREAMS):
        upstream = script("bare_server", "stdio", f"bare{number}")  # servers of the same command are one
        # With a folder of its own: by default a stdio upstream runs in the window's workspace, so each has another.
        cwd = str(bench.folder("upstreams-run-here"))
        entries[f"bare{number}"] = {"command": sys.executable, "args": upstream[1:], "cwd": cwd}
        if name == SHARED:
            entries[f"bare{number}"] = {**entries[f"bare{number}"], "share": True}
    flags = ("--upstreams", str(bench.upstreams_file(entries, f"ten-{name.partition(' ')[0]}")))
    env = bench.env if name == APART else bench.resident_env
    with started_processes() as started:
        if name != APART:
            warm_resident(bench, bench.goat(), started)
        with ExitStack() as stack:
            clients: list[WireClient] = []
            for number in range(WINDOWS):
                window = bench.goat(*flags, workspace=bench.folder(f"project-{number}"))
                clients.append(stack.enter_context(_window(bench, window, env)))
            for number, client in enumerate(clients):
                bench.say(f"{name}: window {number + 1} of {WINDOWS} calls")
                client.open()
                client.list_tools()
                _call_each(client, number)
            pids = _calm(started)
            kinds = [_kind(pid, clients) for pid in pids]
            into.append(Counted({kind: kinds.count(kind) for kind in KINDS}, pss_mb(pids)))
    return into[-1].pss_mb


def _call_each(client: WireClient, window: int) -> None:
    for number in range(UPSTREAMS):
        title = f"window {window} asks {number}"
        answer = client.call(f"mcp__bare{number}__echo", {"text": title})
        if title not in answer:
            raise CannotMeasure(f"bare{number} answered {answer!r} instead of {title!r}")


def _calm(started: Started) -> list[int]:
    """The processes, once none has come or gone for a while."""
    deadline = time.monotonic() + CALM_TIMEOUT_S
    pids, since = started(), time.monotonic()
    while (now := time.monotonic()) < deadline and now - since < CALM_S:
        time.sleep(0.1)
        if (again := started()) != pids:
            pids, since = again, now
    return pids


def _kind(pid: int, clients: Sequence[WireClient]) -> str:
    if pid in {client.process.pid for client in clients}:
        return LAUNCHERS
    if is_resident(pid):
        return SERVERS
    words = command(pid)
    return SERVED if len(words) > 1 and words[1].endswith(b"bare_server.py") else OTHERS


def _window(bench: Workbench, window: Sequence[str], env: Mapping[str, str]) -> WireClient:
    return WireClient(window, env, stderr=bench.root / "windows.log")
