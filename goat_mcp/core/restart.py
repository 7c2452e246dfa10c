"""A request that the server restarts itself. `server.restart_handoff` does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import anyio

AT_ONCE = 3
"""Restarts in a row before there is a wait, which doubles with each further one."""
FIRST_WAIT_S = 10.0
LONGEST_WAIT_S = 300.0
ROW_ENDS_AFTER_S = 600.0
"""A restart after a longer rest is the first of another row."""
_REMEMBERED = 20


def _nothing() -> None:
    """Nothing is known that could fail."""


class Restart:
    """`prevented` says why this process cannot; empty if it can. `check` raises `ToolError` if the process
    that would follow could not start.

    `times_s` are when this server did so before and does now, of a clock that goes on over restarts: a model that asks
    for one as the first thing after each would do nothing else.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.prevented = "no `goat-mcp serve` runs it"
        self.check: Callable[[], object] = _nothing
        self.wanted = anyio.Event()
        self.reason = ""
        self.times_s: Sequence[float] = ()
        self._clock = clock

    @property
    def in_a_row(self) -> int:
        """How many there were without a rest between them, up to now."""
        count, later_s = 0, self._clock()
        for time_s in reversed(self.times_s):
            if not 0 <= later_s - time_s <= ROW_ENDS_AFTER_S:
                break
            count, later_s = count + 1, time_s
        return count

    def wait_s(self) -> float:
        """How long it is until the next one is allowed; 0 if that is now."""
        count = self.in_a_row
        if count < AT_ONCE:
            return 0.0
        wait_s = min(FIRST_WAIT_S * 2 ** (count - AT_ONCE), LONGEST_WAIT_S)
        return max(0.0, self.times_s[-1] + wait_s - self._clock())

    def allow(self) -> None:
        """This process can start again."""
        self.prevented = ""

    def resume(self, check: Callable[[], object], times_s: Sequence[float]) -> None:
        """Go on from the process before. `check` and `times_s` are as in the class."""
        self.check, self.times_s = check, times_s

    def request(self, reason: str) -> None:
        """Calls that run may finish, and are answered; then the process is replaced."""
        if not self.wanted.is_set():
            self.times_s = (*self.times_s, self._clock())[-_REMEMBERED:]
        self.reason = reason
        self.wanted.set()
