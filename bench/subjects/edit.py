"""One needle in 100 MB, edited by us and by a plain Python script on the same file system."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path

from bench.process_cost import peak_resident_mb
from bench.report import Bar, Row
from bench.timing import interleaved, medians, timed_ms
from bench.wire import WireClient
from bench.workbench import Workbench, script

SIZE_BYTES = 100 * 1024 * 1024
TIME_BAR_S = 1.5
RATIO_BAR = 1.6
MEMORY_BAR_MB = 500.0


def measure(bench: Workbench) -> list[Row]:
    workspace = bench.folder("edit")
    ours, plain, text = (workspace / f"{name}.txt" for name in ("ours", "plain", "text"))
    for path in (ours, plain, text):
        bench.say(f"edit: writing {path.name}, 100 MB")
        _write_hundred_mb(path)
    rounds = bench.rounds(9, 3)
    command = bench.goat("--set", "files.read_before_write=off", workspace=workspace)
    with WireClient(command, bench.env, stderr=bench.root / "edit.log") as client:
        client.open()
        candidates = {
            "ours": timed_ms(_edit(client, ours)),
            "bytes": _plain("bytes", plain),
            "text": _plain("text", text),
        }
        for run in candidates.values():
            run()
        took = medians(
            interleaved(candidates, rounds, lambda number: bench.say(f"edit: round {number + 1} of {rounds}"))
        )
        peak_mb = peak_resident_mb(client.process.pid)
    took_s = {name: ms / 1000 for name, ms in took.items()}
    ratio = took_s["ours"] / took_s["bytes"]
    what = "Edit, one needle in 100 MB"
    return [
        Row(what, took_s["ours"], "s", bar=Bar(took_s["ours"], TIME_BAR_S, "s")),
        Row(what, took_s["ours"], "s", "plain Python, bytes", took_s["bytes"], Bar(ratio, RATIO_BAR, "x")),
        Row(
            what,
            took_s["ours"],
            "s",
            "plain Python, decoded text",
            took_s["text"],
            Bar(took_s["ours"] / took_s["text"], RATIO_BAR, "x"),
        ),
        Row("Edit, peak memory of the server", peak_mb, "MB", bar=Bar(peak_mb, MEMORY_BAR_MB, "MB")),
    ]


def _write_hundred_mb(path: Path) -> None:
    line = "the quick brown fox jumps over the lazy dog, and then it does so again and again\n"
    half = line * (SIZE_BYTES // 2 // len(line))
    path.write_text(f"{half}needle number 0 stands here\n{half}", encoding="utf-8")


def _needles() -> Callable[[], tuple[str, str]]:
    """Old and new, so that every edit's outcome is the next one's start."""
    numbers = count()

    def following() -> tuple[str, str]:
        number = next(numbers)
        return f"needle number {number} stands", f"needle number {number + 1} stands"

    return following


def _edit(client: WireClient, path: Path) -> Callable[[], object]:
    needles = _needles()

    def run() -> object:
        old, new = needles()
        return client.call("Edit", {"file_path": str(path), "old_string": old, "new_string": new})

    return run


def _plain(how: str, path: Path) -> Callable[[], float]:
    needles = _needles()

    def run() -> float:
        # The script's own clock: starting Python is not part of an edit.
        done = subprocess.run(
            script("plain_edit", how, str(path), *needles()), stdin=subprocess.DEVNULL, capture_output=True, check=True
        )
        return float(done.stdout) * 1000

    return run
