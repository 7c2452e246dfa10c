"""How long a search may take, and the way to end it early from another thread."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager


class SearchClock:
    """Kills what runs under it at its end, or as soon as `cancel` is called.

    `timed_out` tells whether time, rather than the search, came to its end.
    """

    def __init__(self, limit_s: float) -> None:
        self._ends_at_s = time.monotonic() + limit_s
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self.cancelled = False
        self.timed_out = False

    @property
    def is_over(self) -> bool:
        return self.timed_out or self.cancelled

    @property
    def left_s(self) -> float:
        return max(0.0, self._ends_at_s - time.monotonic())

    def at_most(self, limit_s: float) -> SearchClock:
        """A clock for a part of the work: it ends no later than this one, and with it when cancelled."""
        return _PartClock(self, min(limit_s, self.left_s))

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            if self._running is not None:
                self._running.kill()

    @contextmanager
    def watching(self, process: subprocess.Popen[bytes]) -> Generator[None]:
        """Watch a process while the block reads from it; afterwards it is dead and reaped."""
        timer = threading.Timer(self.left_s, self._expire, (process,))
        timer.daemon = True
        timer.start()
        self._attend(process)
        try:
            yield
        finally:
            timer.cancel()
            self._attend(None)
            process.kill()
            process.wait()

    def _expire(self, process: subprocess.Popen[bytes]) -> None:
        self.timed_out = True
        process.kill()

    def _attend(self, process: subprocess.Popen[bytes] | None) -> None:
        with self._lock:
            self._running = process
            if self.cancelled and process is not None:
                process.kill()


class _PartClock(SearchClock):
    def __init__(self, whole: SearchClock, limit_s: float) -> None:
        super().__init__(limit_s)
        self._whole = whole

    def _attend(self, process: subprocess.Popen[bytes] | None) -> None:
        super()._attend(process)
        self._whole._attend(process)
