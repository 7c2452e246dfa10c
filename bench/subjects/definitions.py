"""What the eight built-in definitions cost a model, counted as characters / 4 of compact `tools/list` JSON."""

from __future__ import annotations

import json

from bench.report import Bar, Row
from bench.wire import WireClient
from bench.workbench import Workbench

TOKENS_BAR = 2200
CHARS_PER_TOKEN = 4


def measure(bench: Workbench) -> list[Row]:
    with WireClient(bench.goat(), bench.env, stderr=bench.root / "definitions.log") as client:
        client.open()
        tools = client.list_tools()
    costs = {tool["name"]: _tokens(tool) for tool in tools}
    total = _tokens(tools)
    rows = [Row(f"all {len(tools)} definitions", total, "tokens", bar=Bar(total, TOKENS_BAR, "tokens"))]
    return rows + [Row(f"definition of {name}", cost, "tokens") for name, cost in costs.items()]


def _tokens(definition: object) -> float:
    return len(json.dumps(definition, separators=(",", ":"), ensure_ascii=False)) / CHARS_PER_TOKEN
