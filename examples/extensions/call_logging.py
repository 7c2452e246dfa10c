"""Logging: how long each call took and how it ended, in a file of your own."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from goat_mcp import CallNext, ToolContext, ToolResult, ToolSpec


async def call_times(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext) -> ToolResult:
    started_s = time.monotonic()
    outcome = "failed"
    try:
        result = await call_next(arguments)
        outcome = "error" if result.is_error else "ok"
        return result
    finally:
        write_down(spec.rule_name, outcome, round((time.monotonic() - started_s) * 1000, 1))


def write_down(tool: str, outcome: str, ms: float) -> None:
    with Path(os.environ["CALL_TIMES"]).open("a") as log:
        log.write(json.dumps({"tool": tool, "outcome": outcome, "ms": ms}) + "\n")
