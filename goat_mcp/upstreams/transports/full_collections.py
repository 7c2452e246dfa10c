"""The interpreter's garbage collector and large answers: a full collection looks at each of their parts while all wait.

Millions of lists and objects that come in at once bring several on, of a third of a second each, and hold no garbage.
"""

from __future__ import annotations

import asyncio
import functools
import gc

PUT_OFF_S = 10.0
"""Until a large answer has gone again, nearly always. Smaller collections go on."""
AT_MOST_S = 60.0
"""Where large answers do not end; they may be had again after as long a time as one is put off for."""
_NEVER = 1_000_000_000


class FullCollections:
    """Those of this process. It has one collector, so there is one of these: `full_collections`."""

    def __init__(self, put_off_s: float = PUT_OFF_S, at_most_s: float = AT_MOST_S) -> None:
        self._put_off_s = put_off_s
        self._at_most_s = at_most_s
        self._usual: tuple[int, int, int] | None = None
        """The thresholds that count otherwise; None where they do."""
        self._latest_s = 0.0
        self._not_before_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def put_off(self) -> None:
        """Have none for a while: much is coming in, or has just come."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        if self._usual is None:
            if now_s < self._not_before_s:
                return
            self._usual = gc.get_threshold()
            self._latest_s = now_s + self._at_most_s
            gc.set_threshold(*self._usual[:2], _NEVER)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(min(now_s + self._put_off_s, self._latest_s), self._have_again, loop)

    def _have_again(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._usual is not None:
            gc.set_threshold(*self._usual)
            self._usual = None
        if loop.time() >= self._latest_s:
            self._not_before_s = loop.time() + self._put_off_s


@functools.cache
def full_collections() -> FullCollections:
    """See there."""
    return FullCollections()
