"""The progress of a relayed call: reports, a sign of life while the upstream is silent (FLW-1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from goat_mcp.core.context import Progress, attended
from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.files.documents.visible_text import make_lines_visible

HEARTBEAT_S = 5.0
_HEARTBEAT_STEP = 1e-6
"""Small beside any step an upstream takes, so that its next report is still above ours."""
REPORTS_PER_S = 50.0
REPORTS_AT_ONCE = 200.0
"""Reports of one call that are passed on. Those beyond are dropped: the next one says more anyway (R-UP-3)."""


@dataclass
class ProgressRelay:
    """One call's progress towards its client. Reports that do not rise are dropped, as the protocol wants.

    `is_left`: whether nobody waits for the call any more, who would want signs of life.
    """

    client: Progress
    heartbeat_s: float = HEARTBEAT_S
    is_left: Callable[[], bool] = attended
    _highest: float | None = None
    _total: float | None = None
    _started_s: float = field(default_factory=time.monotonic)
    _spoke_s: float = field(default_factory=time.monotonic)
    _over: bool = False
    _reports: TokenBucket = field(default_factory=lambda: TokenBucket(REPORTS_PER_S, REPORTS_AT_ONCE))

    async def report(
        self, progress: float, total: float | None, message: str | None, meta: Mapping[str, Any] | None = None
    ) -> None:
        if self._over or (self._highest is not None and progress <= self._highest):
            return
        if not self._reports.take():
            return
        self._highest, self._total, self._spoke_s = progress, total, time.monotonic()
        await self.client(progress, total, make_lines_visible(message) if message else message, meta=meta)

    async def beat(self) -> None:
        """Until cancelled, or the call is left: speak whenever the upstream has been silent for a while."""
        while not self.is_left():
            now_s = time.monotonic()
            due_s = self._spoke_s + self.heartbeat_s
            if now_s < due_s:
                await anyio.sleep(due_s - now_s)
                continue
            elapsed_s = now_s - self._started_s
            step = 0.0 if self._highest is None else self._highest + _HEARTBEAT_STEP
            await self.report(step, self._total, f"still running after {elapsed_s:.0f} s")

    def end(self) -> None:
        """Nothing may follow the call's result."""
        self._over = True
