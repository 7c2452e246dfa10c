"""The last calls of each principal, for who wants to watch: what was called, when, for how long and how it ended.

Arguments and results are not kept. What must last is in the audit log.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from datetime import UTC, datetime
from typing import Any

from goat_mcp.core.announcements import Announcements
from goat_mcp.core.context import ToolContext

CALLS_URI = "goat://calls"
KEPT_CALLS = 100
KEPT_PRINCIPALS = 100
_NAME_CHARS = 200


class CallLog:
    """In memory, bounded; it ends with the process."""

    def __init__(self, announcements: Announcements) -> None:
        self._announcements = announcements
        self._calls: OrderedDict[str, deque[dict[str, Any]]] = OrderedDict()

    def record(self, tool: str, ctx: ToolContext, *, error_code: str | None) -> None:
        elapsed_s = time.monotonic() - ctx.started_at_s
        started = datetime.fromtimestamp(time.time() - elapsed_s, UTC)
        self._of(ctx.principal).appendleft(
            {
                "time": started.isoformat(timespec="milliseconds"),
                "call_id": ctx.call_id,
                "tool": tool[:_NAME_CHARS],
                "outcome": error_code or "ok",
                "duration_ms": round(elapsed_s * 1000, 1),
            }
        )
        self._announcements.changed(CALLS_URI, ctx.principal)

    def newest_first(self, principal: str) -> list[dict[str, Any]]:
        return list(self._calls.get(principal, ()))

    def _of(self, principal: str) -> deque[dict[str, Any]]:
        calls = self._calls.setdefault(principal, deque(maxlen=KEPT_CALLS))
        self._calls.move_to_end(principal)
        if len(self._calls) > KEPT_PRINCIPALS:
            self._calls.popitem(last=False)
        return calls
