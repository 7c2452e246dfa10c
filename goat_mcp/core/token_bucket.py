"""A token bucket: so much a second, and so much at once. What happens past that is decided by whoever asks."""

from __future__ import annotations

import time
from collections.abc import Callable


class TokenBucket:
    """Fills up at `per_s`, to `at_once` at most; it is full at first."""

    def __init__(self, per_s: float, at_once: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._at_once = at_once
        self._clock = clock
        self._left = at_once
        self._filled_s = clock()

    def take(self, cost: float = 1.0) -> bool:
        """Take it where it is there; False, and nothing is taken, where it is not."""
        self._fill()
        if self._left < cost:
            return False
        self._left -= cost
        return True

    def spend(self, cost: float) -> float:
        """Take it even where it is not there. Seconds until the debt is paid; 0 where there is none."""
        self._fill()
        self._left -= cost
        return max(0.0, -self._left / self._per_s)

    def _fill(self) -> None:
        now_s = self._clock()
        self._left = min(self._at_once, self._left + (now_s - self._filled_s) * self._per_s)
        self._filled_s = now_s
