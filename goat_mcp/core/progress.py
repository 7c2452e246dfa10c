"""A call's progress towards its caller: values that rise, a notice when the work begins and one when it has ended."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from goat_mcp.core.context import Progress, ToolContext

_MOST = 1e300
_STEP = 1e-6
"""Small beside any step that a tool reports, so that its next value is still above a lifted one."""


class RisingProgress:
    """A `Progress` whose values rise, as MCP demands: one that does not is lifted a little above the one before.

    So is one that leaves no room for those after it. JSON has no infinite total; such a total is left out.
    """

    def __init__(self, report: Progress) -> None:
        self._report = report
        self._highest = -1.0

    async def __call__(
        self,
        done: float,
        total: float | None = None,
        message: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        if not self._highest < done < _MOST:
            done = max(self._highest + _STEP, math.nextafter(self._highest, math.inf))
        self._highest = done
        await self._report(done, total if total is not None and -_MOST < total < _MOST else None, message, meta=meta)


class WorkNotices:
    """The start and the end of one call's work, for a caller that wants progress; what is reported later is dropped.

    Source: Goat tool system, `Emit ToolProgress (start)` and `(end, elapsed)`.
    """

    def __init__(self, tool: str, ctx: ToolContext) -> None:
        self._tool = tool
        self._ctx = ctx
        self._started_s = time.monotonic()
        self._is_over = False

    async def start(self) -> ToolContext:
        """Returns the context for the work."""
        if not self._ctx.wants_progress:
            return self._ctx
        await self._ctx.progress(0, None, f"{self._tool} started")
        return self._ctx.changed(progress=self._report)

    async def end(self, *, failed: bool) -> None:
        self._is_over = True
        if self._ctx.wants_progress:
            seconds = time.monotonic() - self._started_s
            how = "failed after" if failed else "finished in"
            await self._ctx.progress(seconds, None, f"{self._tool} {how} {seconds:.3f} s")

    async def _report(
        self,
        done: float,
        total: float | None = None,
        message: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        if not self._is_over:
            await self._ctx.progress(done, total, message, meta=meta)
