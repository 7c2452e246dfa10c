"""Grep over a large tree against the same ripgrep, run by itself on the same pattern."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

from bench.corpus import ABSENT, COMMON, RARE
from bench.report import Bar, Row
from bench.timing import interleaved, medians, timed_ms
from bench.wire import WireClient
from bench.workbench import Workbench, rg_command

OVER_RG_BAR_MS = 50.0
CASES: tuple[tuple[str, str, str], ...] = (
    ("rare hit", RARE, "files_with_matches"),
    ("no hit", ABSENT, "files_with_matches"),
    ("many hits", COMMON, "files_with_matches"),
    ("rare hit", RARE, "content"),
    ("many hits", COMMON, "content"),
    ("many hits", COMMON, "count"),
    ("regex", r"retry_b\w+ = \d*7$", "content"),
)
_RG_MODE = {"files_with_matches": ["-l"], "content": ["-n", "--with-filename"], "count": ["-c", "--with-filename"]}


def measure(bench: Workbench) -> list[Row]:
    corpus, rows = bench.corpus(), list[Row]()
    rounds = bench.rounds(15, 5)
    with WireClient(bench.goat(workspace=corpus.root), bench.env, stderr=bench.root / "grep.log") as client:
        client.open()
        for what, pattern, mode in CASES:
            alone = [rg_command(), "--no-config", "--hidden", *_RG_MODE[mode], "-e", pattern, "--", str(corpus.root)]
            candidates = {"ours": timed_ms(_grep(client, pattern, mode)), "rg": timed_ms(_run(alone))}
            for run in candidates.values():
                run()
            took = medians(
                interleaved(
                    candidates,
                    rounds,
                    lambda n, w=what, m=mode: bench.say(f"grep, {w}, {m}: round {n + 1} of {rounds}"),
                )
            )
            bar = Bar(took["ours"] - took["rg"], OVER_RG_BAR_MS, "ms over rg")
            rows.append(Row(f"Grep {corpus.files:,} files, {what}, {mode}", took["ours"], "ms", "rg", took["rg"], bar))
    return rows


def _grep(client: WireClient, pattern: str, mode: str) -> Callable[[], object]:
    return lambda: client.call("Grep", {"pattern": pattern, "output_mode": mode})


def _run(command: Sequence[str]) -> Callable[[], object]:
    # Exit status 1 means that nothing matched.
    return lambda: subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
