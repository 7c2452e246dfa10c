"""How often one host is asked."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

from goat_mcp.core.errors import ErrorCode, ToolError

_WINDOW_S = 60.0
_MAX_HOSTS = 1_000


class HostRateLimiter:
    """At most `per_minute` requests to a host within any minute; 0 means any number. `clock` gives seconds."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._taken: dict[str, deque[float]] = {}

    def take(self, host: str) -> None:
        """Count one request. Raises `ToolError(RATE)` where it would be one too many."""
        if not self._per_minute:
            return
        now = self._clock()
        if host not in self._taken and len(self._taken) >= _MAX_HOSTS:
            self._taken = {name: times for name, times in self._taken.items() if times[-1] > now - _WINDOW_S}
        times = self._taken.setdefault(host, deque(maxlen=self._per_minute))
        if len(times) == self._per_minute and times[0] > now - _WINDOW_S:
            left_s = math.ceil(times[0] + _WINDOW_S - now)
            raise ToolError(
                ErrorCode.RATE,
                f"{host} was asked {self._per_minute} times within a minute, which is the limit",
                f"Call again in {left_s} s, or fetch something else.",
                facts={"retry_after_s": left_s},
            )
        times.append(now)
