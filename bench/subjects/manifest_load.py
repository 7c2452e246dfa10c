"""Reading 500 manifests in a process that has read none, and what an empty directory of them adds to a start."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

from bench.report import Bar, Row
from bench.subjects.manifest_call import HANDLERS, MANIFEST
from bench.timing import interleaved, medians
from bench.wire import WireClient
from bench.workbench import CannotMeasure, Workbench

COUNT = 500
LOAD_BAR_MS = 300.0
START_BAR = 1.05
_LOAD = """\
import sys, time
from pathlib import Path
started, worked = time.perf_counter(), time.process_time()
from goat_mcp.manifests.folder import ManifestFolders
read = ManifestFolders([Path(sys.argv[1])]).read()
took_ms = (time.perf_counter() - started) * 1000
print(len(read.tools), len(read.problems), took_ms, (time.process_time() - worked) * 1000)
"""


def measure(bench: Workbench) -> list[Row]:
    many = bench.folder("many-manifests")
    for number in range(COUNT):
        folder = bench.folder(f"many-manifests/lines{number}")
        (folder / "tool.yaml").write_text(MANIFEST.replace("name: lines", f"name: lines{number}"), encoding="utf-8")
        (folder / "handlers.py").write_text(HANDLERS, encoding="utf-8")

    cpu: list[float] = []

    def load() -> float:
        words = [sys.executable, "-c", _LOAD, str(many)]
        done = subprocess.run(words, env=bench.env, capture_output=True, text=True, check=True)
        tools, problems, took_ms, cpu_ms = done.stdout.split()
        if (int(tools), int(problems)) != (COUNT, 0):
            raise CannotMeasure(f"{tools} of {COUNT} manifests were read, with {problems} problems")
        cpu.append(float(cpu_ms))
        return float(took_ms)

    candidates: dict[str, Callable[[], float]] = {
        "load": load,
        "none": _start(bench, bench.goat()),
        "empty": _start(bench, bench.goat("--manifests", str(bench.folder("no-manifests")))),
        "many": _start(bench, bench.goat("--manifests", str(many), "--set", "catalog.mode=search")),
    }
    for run in candidates.values():
        run()
    cpu.clear()
    rounds = bench.rounds(15, 7)
    took = medians(
        interleaved(candidates, rounds, lambda number: bench.say(f"manifest_load: round {number + 1} of {rounds}"))
    )
    return [
        Row(f"{COUNT} manifests read, imports too", took["load"], "ms", bar=Bar(took["load"], LOAD_BAR_MS, "ms")),
        Row("CPU time of that", median(cpu), "ms"),
        Row(
            "start to tools/list, an empty directory of manifests",
            *(took["empty"], "ms", "without one", took["none"]),
            Bar(took["empty"] / took["none"], START_BAR, "x"),
        ),
        Row(f"start to tools/list, {COUNT} manifests", took["many"], "ms", "without any", took["none"]),
    ]


def _start(bench: Workbench, command: Sequence[str]) -> Callable[[], float]:
    def run() -> float:
        started = time.perf_counter()
        with WireClient(command, bench.env, "modern", stderr=bench.root / "manifests.log") as client:
            client.open()
            client.list_tools()
            return (time.perf_counter() - started) * 1000

    return run
