"""Many clients at a time for a while, beside an upstream that hangs and one that crashes: nothing is wrong or lost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.conftest import UNASKED, fill, ours, upstream_file
from tests.e2e.goat import HttpGoat, Launch, http_goat
from tests.e2e.http_wire import Response, call, exchange, listed_with
from tests.e2e.open_files import descriptors
from tests.e2e.processes import descendants
from tests.repetitions import times

pytestmark = [pytest.mark.real_processes, pytest.mark.e2e, pytest.mark.chaos]

CLIENTS = 50
FOR_S = times(6, in_full_run=60)
MIB = 1024 * 1024
SETTLED_S = 120.0


def text_of(response: Response) -> str:
    assert response.status == 200, (response.status, response.body[:300])
    result = response.message["result"]
    return "ERROR " * result["isError"] + result["content"][0]["text"]


def memory_bytes(goat: HttpGoat) -> int:
    lines = Path(f"/proc/{goat.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def settles(is_so: Callable[[], bool]) -> bool:
    ends_at_s = time.monotonic() + SETTLED_S
    while not is_so() and time.monotonic() < ends_at_s:
        time.sleep(0.1)
    return is_so()


class Visitor:
    """One client: mixed calls whose answers it knows beforehand, one after the other until the time is over."""

    def __init__(self, goat: HttpGoat, workspace: Path, number: int) -> None:
        self._goat = goat
        self._path = workspace / f"visitor-{number}.txt"
        self._number = number
        self.answered = 0
        self.wrong: list[tuple[str, str]] = []

    def stay(self, over: threading.Event) -> None:
        self._path.write_text(f"own text of {self._number}\n")
        while not over.is_set():
            self._round()

    def _round(self) -> None:
        marker = f"visitor-{self._number}-{self.answered}"
        own = f"own text of {self._number}"
        self._expect("mcp__good__echo", {"text": marker}, marker)
        self._expect("Read", {"file_path": str(self._path)}, f"1\t{own}")
        self._expect("Glob", {"pattern": self._path.name}, str(self._path))
        if self.answered % 10 == 0:
            self._expect("Grep", {"pattern": own, "glob": self._path.name}, str(self._path))

    def _expect(self, tool: str, arguments: dict[str, str], wanted: str) -> None:
        answer = text_of(call(self._goat, tool, arguments, self.answered))
        self.answered += 1
        if answer != wanted:
            self.wrong.append((wanted, answer[:200]))


def test_ld_01_no_answer_is_wrong_or_lost_beside_a_hang_and_crashes(tmp_path: Path) -> None:
    """R-LOAD-1. Sizes: 50 clients, 12 s in every run and 60 s at night; bodies are checked, not only statuses."""
    upstreams = upstream_file(
        tmp_path / "upstreams.json",
        good={**ours("plain"), "concurrency": 64},
        hanging={**ours("plain", "hangs-in-calls"), "timeout_s": 2},
        crashing=ours("plain", "crashes-in-calls"),
    )
    limits = ("limits.calls_per_s=0", "limits.concurrent_calls=200", "limits.concurrent_calls_in_all=200")
    options = [option for limit in limits for option in ("--set", limit)]
    launch = Launch(tmp_path, fill(tmp_path / "workspace"), (*UNASKED, "--upstreams", str(upstreams), *options))
    bad = Counter[str]()
    over = threading.Event()

    def call_bad_ones(goat: HttpGoat) -> None:
        while not over.is_set():
            for name in ("hanging", "crashing"):
                bad[f"{name} {text_of(call(goat, f'mcp__{name}__echo', {'text': 'x'})).split()[0]}"] += 1
            over.wait(1)

    with http_goat(launch) as goat, ThreadPoolExecutor(CLIENTS + 1) as threads:
        listed_with(goat, "mcp__good__echo", "mcp__hanging__echo", "mcp__crashing__echo")
        visitors = [Visitor(goat, launch.workspace, number) for number in range(CLIENTS)]
        beside = threads.submit(call_bad_ones, goat)
        stays = [threads.submit(visitor.stay, over) for visitor in visitors]
        try:
            time.sleep(FOR_S / 2)
            halfway_bytes = memory_bytes(goat)
            time.sleep(FOR_S / 2)
            # A busy machine takes longer for as much.
            was_enough = settles(
                lambda: (
                    (
                        min(visitor.answered for visitor in visitors) >= 10
                        and min(bad["hanging ERROR"], bad["crashing ERROR"]) >= 2
                    )
                    or any(stay.done() for stay in stays)
                )
            )
            at_the_end_bytes = memory_bytes(goat)
        finally:
            over.set()
        for stay in (*stays, beside):
            stay.result(120)
        exchange(goat)

        assert [wrong for visitor in visitors for wrong in visitor.wrong] == []
        assert was_enough
        assert set(bad) == {"hanging ERROR", "crashing ERROR"}
        assert at_the_end_bytes - halfway_bytes < 16 * MIB
        assert settles(lambda: descriptors(goat.process.pid) < 60)
        assert settles(lambda: len(descendants(goat.process.pid)) <= 5)
