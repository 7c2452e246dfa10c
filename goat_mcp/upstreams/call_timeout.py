"""The timeout of a request to an upstream: one for the whole, one between signs of life (FLW-3)."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

import anyio

from goat_mcp.core.cancel_scopes import cancel_scope


class CallClock:
    """`total_s` for the whole, `idle_s` between signs of life (FLW-3). Made when the call begins."""

    def __init__(self, total_s: float, idle_s: float) -> None:
        self._idle_s = idle_s
        now_s = asyncio.get_running_loop().time()
        self._ends_s = now_s + total_s
        self._stops = 0
        self._stopped_s = 0.0
        self.scope = cancel_scope(min(self._ends_s, now_s + idle_s))

    def heard(self) -> None:
        """A sign of life."""
        if not self._stops:
            self.scope.deadline = min(self._ends_s, anyio.current_time() + self._idle_s)

    @contextmanager
    def stopped(self) -> Generator[None]:
        """No time passes meanwhile."""
        if not self._stops:
            self._stopped_s = anyio.current_time()
            self.scope.deadline = float("inf")
        self._stops += 1
        try:
            yield
        finally:
            self._stops -= 1
            if not self._stops:
                self._ends_s += anyio.current_time() - self._stopped_s
                self.heard()

    @property
    def was_silent(self) -> bool:
        """Whether it ran out for lack of signs of life, before the whole time was over."""
        return anyio.current_time() < self._ends_s
