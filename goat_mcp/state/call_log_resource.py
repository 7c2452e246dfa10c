"""`goat://calls`: the reader's own last calls."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import Entry, Reading, json_entry, json_reading
from goat_mcp.state.call_log import CALLS_URI, KEPT_CALLS, CallLog


class CallLogResource:
    templates: Sequence[Entry] = ()
    entries = (json_entry(CALLS_URI, "calls", f"Your last {KEPT_CALLS} calls: tool, time, outcome, duration"),)

    def __init__(self, calls: CallLog) -> None:
        self._calls = calls

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        return json_reading({"calls": self._calls.newest_first(ctx.principal)}) if uri == CALLS_URI else None
