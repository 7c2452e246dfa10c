"""Glob over a large tree, newest 100, against `rg --files`, which looks at no times; and memory over many calls."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from bench.process_cost import resident_mb
from bench.report import Bar, Row
from bench.timing import interleaved, medians, timed_ms
from bench.wire import WireClient
from bench.workbench import Workbench, rg_command

RATIO_BAR = 2.0
GROWTH_BAR_MB = 2.0
"""What we call flat: growth between the tenth call and the last."""
PATTERNS = ("**/*", "**/*.py", "**/worker_*.{ts,go}")


def measure(bench: Workbench) -> list[Row]:
    corpus, rows = bench.corpus(), list[Row]()
    rounds = bench.rounds(15, 5)
    command = bench.goat(workspace=corpus.root)
    alone = [rg_command(), "--no-config", "--hidden", "--files", str(corpus.root)]
    with WireClient(command, bench.env, stderr=bench.root / "glob.log") as client:
        client.open()
        for pattern in PATTERNS:
            candidates = {
                "ours": timed_ms(_glob(client, pattern)),
                "rg": timed_ms(lambda: subprocess.run(alone, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)),
            }
            for run in candidates.values():
                run()
            took = medians(
                interleaved(candidates, rounds, lambda n, p=pattern: bench.say(f"glob, {p}: round {n + 1} of {rounds}"))
            )
            bar = Bar(took["ours"] / took["rg"], RATIO_BAR, "x")
            rows.append(
                Row(f"Glob {corpus.files:,} files, {pattern}", took["ours"], "ms", "rg --files", took["rg"], bar)
            )
        rows.append(_growth(bench, client))
    return rows


def _growth(bench: Workbench, client: WireClient) -> Row:
    call, calls = _glob(client, "**/*"), bench.rounds(60, 25)
    for _ in range(10):
        call()
    before_mb = resident_mb(client.process.pid)
    for number in range(10, calls):
        bench.say(f"glob, memory: call {number + 1} of {calls}")
        call()
    after_mb = resident_mb(client.process.pid)
    return Row(
        f"Glob memory after {calls} calls",
        after_mb,
        "MB",
        "after 10 calls",
        before_mb,
        Bar(after_mb - before_mb, GROWTH_BAR_MB, "MB grown"),
    )


def _glob(client: WireClient, pattern: str) -> Callable[[], object]:
    return lambda: client.call("Glob", {"pattern": pattern})
