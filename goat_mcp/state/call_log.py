"""The last calls of each principal, for who wants to watch: what was called, when, for how long and how it ended.

Arguments and results are not kept. What must last is in the audit log.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from datetime import UTC, datetime
from typing import Any, NamedTuple

from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import Announcements

CALLS_URI = "goat://calls"
KEPT_CALLS = 100
KEPT_PRINCIPALS = 100
_NAME_CHARS = 200


class _Ended(NamedTuple):
    """One call. Put into words when somebody looks, which is seldom."""

    started_at_s: float
    call_id: str
    tool: str
    outcome: str
    elapsed_s: float

    def shown(self) -> dict[str, Any]:
        return {
            "time": datetime.fromtimestamp(self.started_at_s, UTC).isoformat(timespec="milliseconds"),
            "call_id": self.call_id,
            "tool": self.tool,
            "outcome": self.outcome,
            "duration_ms": round(self.elapsed_s * 1000, 1),
        }


class CallLog:
    """In memory, bounded; it ends with the process."""

    def __init__(self, announcements: Announcements) -> None:
        self._announcements = announcements
        self._calls: OrderedDict[str, deque[_Ended]] = OrderedDict()

    def record(self, tool: str, ctx: ToolContext, *, error_code: str | None) -> None:
        elapsed_s = time.monotonic() - ctx.started_at_s
        ended = _Ended(time.time() - elapsed_s, ctx.call_id, tool[:_NAME_CHARS], error_code or "ok", elapsed_s)
        self._of(ctx.principal).appendleft(ended)
        self._announcements.changed(CALLS_URI, ctx.principal)

    def newest_first(self, principal: str) -> list[dict[str, Any]]:
        return [call.shown() for call in self._calls.get(principal, ())]

    def _of(self, principal: str) -> deque[_Ended]:
        calls = self._calls.setdefault(principal, deque(maxlen=KEPT_CALLS))
        self._calls.move_to_end(principal)
        if len(self._calls) > KEPT_PRINCIPALS:
            self._calls.popitem(last=False)
        return calls
