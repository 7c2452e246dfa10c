"""Notices that this process stood still: it was stopped, or its machine slept, and others may have given it up."""

from __future__ import annotations

from collections.abc import Callable

import anyio

BEATS = 5


class StallDetector:
    """By a beat of the event loop. `is_stalled` stays until `recovered`: what is read first after a stall is what came
    during it."""

    def __init__(self, longest_s: float, is_held: Callable[[], bool], clock: Callable[[], float]) -> None:
        """`is_held`: whether its lease lasts. A stall of `longest_s` counts if the lease ran out in it."""
        self._longest_s = longest_s
        self._is_held = is_held
        self._clock = clock
        self._beat_s: float | None = None
        self._was_stalled = False

    @property
    def is_stalled(self) -> bool:
        """Whether it stood still beyond its lease, now or since `recovered`."""
        if self._beat_s is not None and self._clock() - self._beat_s > self._longest_s and not self._is_held():
            self._was_stalled = True
        return self._was_stalled

    def recovered(self) -> None:
        """The others know this process again."""
        self._beat_s = self._clock()
        self._was_stalled = False

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            if not self.is_stalled:
                self._beat_s = self._clock()
            await anyio.sleep(self._longest_s / BEATS)
