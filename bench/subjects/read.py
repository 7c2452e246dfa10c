"""Read of a 2,000-line file against an SDK echo tool: same client, same transport, taking turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import anyio

from bench.clients import connected
from bench.report import Bar, Row
from bench.timing import interleaved_bursts_ms, medians
from bench.wire import Era
from bench.workbench import Workbench, script

RATIO_BAR = 2.0
LINES = 2000
BURST_SIZE = 5


def measure(bench: Workbench) -> list[Row]:
    path = bench.folder("workspace") / "two_thousand_lines.txt"
    path.write_text("".join(f"line {number:04d} of it\n" for number in range(LINES)), encoding="utf-8")
    rows: list[Row] = []
    for era in get_args(Era):
        rows += anyio.run(_measure_era, bench, era, path)
    return rows


async def _measure_era(bench: Workbench, era: Era, path: Path) -> list[Row]:
    targets = {"ours": bench.goat(), "bare": script("bare_server", "stdio")}
    bursts = bench.rounds(100, 30)
    async with connected(targets, era, bench.env) as clients:
        for client in clients.values():
            await client.list_tools()

        async def read() -> str:
            return _text(await clients["ours"].call_tool("Read", {"file_path": str(path)}))

        shown = await read()
        if f"{LINES}\t" not in shown:
            raise LookupError(f"Read did not show line {LINES}: {shown[-300:]}")
        calls = {
            "read": read,
            "echo": lambda: clients["bare"].call_tool("echo", {"text": "hello"}),
            "large echo": lambda: clients["bare"].call_tool("echo", {"text": shown}),
        }
        took = medians(
            await interleaved_bursts_ms(
                calls,
                bursts=bursts,
                size=BURST_SIZE,
                on_burst=lambda n: bench.say(f"read, {era}: burst {n + 1} of {bursts}"),
            )
        )
    bar = Bar(took["read"] / took["echo"], RATIO_BAR, "x")
    what = f"Read of {LINES:,} lines, {era}, p50"
    return [
        Row(what, took["read"], "ms", "echo of 5 characters", took["echo"], bar),
        Row(what, took["read"], "ms", f"echo of {len(shown):,} characters", took["large echo"]),
    ]


def _text(result: Any) -> str:
    return "\n".join(block.text for block in result.content)
