"""Bash running `true` in its sandbox against `bash -c true` started from Python."""

from __future__ import annotations

import subprocess

from bench.report import Bar, Row
from bench.timing import interleaved, medians, timed_ms
from bench.wire import WireClient
from bench.workbench import Workbench

BAR_MS = 40.0


def measure(bench: Workbench) -> list[Row]:
    rounds = bench.rounds(200, 40)
    command = bench.goat("--set", "sandbox=required")
    with WireClient(command, bench.env, stderr=bench.root / "sandbox.log") as client:
        client.open()
        candidates = {
            "ours": timed_ms(lambda: client.call("Bash", {"command": "true"})),
            "alone": timed_ms(
                lambda: subprocess.run(
                    ["bash", "-c", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=True
                )
            ),
        }
        for run in candidates.values():
            run()
        took = medians(
            interleaved(candidates, rounds, lambda number: bench.say(f"sandbox: round {number + 1} of {rounds}"))
        )
    bar = Bar(took["ours"], BAR_MS, "ms")
    return [Row("Bash true, sandboxed", took["ours"], "ms", "bash -c true", took["alone"], bar)]
