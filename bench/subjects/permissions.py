"""What deciding costs: one decision among 500 rules, and a Read with the permission stage against one without it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import anyio

from bench.report import Bar, Row
from bench.timing import interleaved_bursts_ms, medians
from bench.workbench import Workbench
from goat_mcp.calls.permissions.decide import Decision
from goat_mcp.calls.permissions.mode import Approval, Effect
from goat_mcp.calls.permissions.permission import Permission, Preview, no_preview
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.calls.pipeline import Pipeline
from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory

DECISION_BAR_MS = 1.0
ADDED_BAR = 1.10
NUM_RULES = 500
LINES = 2000
BURST_SIZE = 20


@dataclass(frozen=True)
class NoPermission(Permission):
    """Lets every call pass and looks at nothing."""

    def root_texts(self) -> tuple[str, ...]:
        return ()

    def decide(self, call: Call, ctx: ToolContext) -> Decision:
        return Decision(Effect.ALLOW, "bench")

    async def settle(self, decision: Decision, call: Call, ctx: ToolContext, preview: Preview = no_preview) -> Decision:
        return decision


def measure(bench: Workbench) -> list[Row]:
    path = bench.folder("permissions") / "two_thousand_lines.txt"
    path.write_text("".join(f"line {number:04d} of it\n" for number in range(LINES)), encoding="utf-8")
    return [*_decisions(bench, path), *anyio.run(_reads, bench, path)]


def _gateway(bench: Workbench, folder: Path) -> Gateway:
    tree = {"workspace": [str(folder)], "permissions": five_hundred_rules()}
    return Gateway(
        settings_of(tree, "the bench"), approval=Approval.HOST, state=StateDirectory(bench.folder("permissions-state"))
    )


def five_hundred_rules() -> dict[str, list[str]]:
    """Of every kind, none of which fits the calls below: each has to be looked at."""
    kinds = (
        *("Read(./private{}/**)", "Edit(src{}/**/*.py)", "Bash(tool{} run *)", "WebFetch(domain:host{}.example)"),
        "mcp__server__create(repo:org{}/*)",
    )
    texts = [kind.format(number) for number in range(NUM_RULES // len(kinds)) for kind in kinds]
    return {"deny": texts[0::3], "ask": texts[1::3], "allow": texts[2::3]}


def _decisions(bench: Workbench, path: Path) -> list[Row]:
    gateway = _gateway(bench, path.parent)
    ctx = ToolContext(call_id="bench")
    calls: Mapping[str, tuple[str, Mapping[str, Any]]] = {
        "Read": ("Read", {"file_path": str(path)}),
        "Write": ("Write", {"file_path": str(path), "content": "x"}),
        "Bash": ("Bash", {"command": "git status && npm run build -- --mode production | tail -n 20"}),
        "WebFetch": ("WebFetch", {"url": "https://docs.example.org/page"}),
    }
    rows: list[Row] = []
    for name, (tool, arguments) in calls.items():
        call, _ = gateway.pipeline.admission.decide(tool, arguments, ctx)
        took: list[float] = []
        for _ in range(bench.rounds(2000, 300)):
            fresh = replace(call)  # what is worked out about a call is kept in it
            started = time.perf_counter()
            gateway.pipeline.permission.decide(fresh, ctx)
            took.append((time.perf_counter() - started) * 1000)
        p50 = median(took)
        rows.append(
            Row(f"decision on {name}, {NUM_RULES} rules, p50", p50, "ms", "", None, Bar(p50, DECISION_BAR_MS, "ms"))
        )
    return rows


async def _reads(bench: Workbench, path: Path) -> Sequence[Row]:
    gateway = _gateway(bench, path.parent)
    with_stage = gateway.pipeline
    without = replace(with_stage, permission=NoPermission())

    async def read(pipeline: Pipeline) -> None:
        result = await pipeline.call("Read", {"file_path": str(path)}, ToolContext(call_id="bench"))
        if result.is_error:
            raise LookupError(result.text)

    bursts = bench.rounds(100, 30)
    async with gateway.running():
        took = medians(
            await interleaved_bursts_ms(
                {"with": partial(read, with_stage), "without": partial(read, without)},
                bursts=bursts,
                size=BURST_SIZE,
                on_burst=lambda n: bench.say(f"permissions: burst {n + 1} of {bursts}"),
            )
        )
    bar = Bar(took["with"] / took["without"], ADDED_BAR, "x")
    what = f"Read of {LINES:,} lines in process, {NUM_RULES} rules, p50"
    return [Row(what, took["with"], "ms", "without the permission stage", took["without"], bar)]
