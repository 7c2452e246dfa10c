"""A call of a declared tool's Python handler against a built-in that does the same: same server, same client."""

from __future__ import annotations

from typing import Any, get_args

import anyio

from bench.clients import connected
from bench.report import Bar, Row
from bench.timing import interleaved_bursts_ms, medians
from bench.wire import Era
from bench.workbench import Workbench

RATIO_BAR = 1.3
BURST_SIZE = 5
LINES = 40
MANIFEST = """\
apiVersion: goat-mcp/v1
kind: Tool
metadata: {name: lines}
spec:
  entry: ./handlers.py
  exports:
    - name: read
      description: Read a file, its lines numbered.
      sideEffect: none
      parameters: {type: object, properties: {path: {type: string}}, required: [path], additionalProperties: false}
"""
HANDLERS = """\
from pathlib import Path


async def read(ctx, input):
    lines = Path(input["path"]).read_text().splitlines()
    return "\\n".join(f"{number}\\t{line}" for number, line in enumerate(lines, 1))


handlers = {"read": read}
"""


def measure(bench: Workbench) -> list[Row]:
    folder = bench.folder("manifests/lines")
    (folder / "tool.yaml").write_text(MANIFEST, encoding="utf-8")
    (folder / "handlers.py").write_text(HANDLERS, encoding="utf-8")
    (bench.folder("workspace") / "forty_lines.txt").write_text(
        "".join(f"line {number:02d} of it\n" for number in range(LINES)), encoding="utf-8"
    )
    rows: list[Row] = []
    for era in get_args(Era):
        rows.append(anyio.run(_measure_era, bench, era))
    return rows


async def _measure_era(bench: Workbench, era: Era) -> Row:
    path = str(bench.folder("workspace") / "forty_lines.txt")
    targets = {"ours": bench.goat("--manifests", str(bench.folder("manifests")))}
    bursts = bench.rounds(100, 30)
    async with connected(targets, era, bench.env) as clients:
        client = clients["ours"]
        await client.list_tools()
        shown = _text(await client.call_tool("lines__read", {"path": path}))
        if f"{LINES}\t" not in shown:
            raise LookupError(f"the handler did not show line {LINES}: {shown[-300:]}")
        took = medians(
            await interleaved_bursts_ms(
                {
                    "handler": lambda: client.call_tool("lines__read", {"path": path}),
                    "built-in": lambda: client.call_tool("Read", {"file_path": path}),
                },
                bursts=bursts,
                size=BURST_SIZE,
                on_burst=lambda n: bench.say(f"manifest_call, {era}: burst {n + 1} of {bursts}"),
            )
        )
    bar = Bar(took["handler"] / took["built-in"], RATIO_BAR, "x")
    what = f"a Python handler reads {LINES} lines, {era}, p50"
    return Row(what, took["handler"], "ms", f"Read of {LINES} lines", took["built-in"], bar)


def _text(result: Any) -> str:
    return "\n".join(block.text for block in result.content)
