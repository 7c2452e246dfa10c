"""How long a search may take, and how it ends early: at its deadline, or as soon as the call is cancelled."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import anyio
import anyio.to_thread

ResultT = TypeVar("ResultT")
SEARCH_LIMIT_S = 20.0
"""Then the answer is what was found so far (security.md, R-LIMIT-1)."""


async def in_thread(work: Callable[[SearchDeadline], ResultT], limit_s: float = SEARCH_LIMIT_S) -> ResultT:
    """Run a blocking search in a thread. A cancelled call ends it at once."""
    deadline = SearchDeadline(limit_s)
    try:
        return await anyio.to_thread.run_sync(work, deadline, abandon_on_cancel=True)
    finally:
        deadline.cancel()


class SearchDeadline:
    """Kills the process that runs under it at the deadline, or as soon as `cancel` is called.

    `timed_out`: the deadline, not the search, was the end.
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

    def at_most(self, limit_s: float) -> SearchDeadline:
        """A deadline for a part of the work: it ends no later than this one, and is cancelled with it."""
        return _PartDeadline(self, min(limit_s, self.left_s))

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            if self._running is not None:
                self._running.kill()

    @contextmanager
    def watching(self, process: subprocess.Popen[bytes]) -> Generator[None]:
        """Watch a process while the block reads from it. Afterwards it is dead and reaped."""
        timer = threading.Timer(self.left_s, self._expire, (process,))
        timer.daemon = True
        timer.start()
        self._watch(process)
        try:
            yield
        finally:
            timer.cancel()
            self._watch(None)
            process.kill()
            process.wait()

    def _expire(self, process: subprocess.Popen[bytes]) -> None:
        self.timed_out = True
        process.kill()

    def _watch(self, process: subprocess.Popen[bytes] | None) -> None:
        with self._lock:
            self._running = process
            if self.cancelled and process is not None:
                process.kill()


class _PartDeadline(SearchDeadline):
    def __init__(self, whole: SearchDeadline, limit_s: float) -> None:
        super().__init__(limit_s)
        self._whole = whole

    def _watch(self, process: subprocess.Popen[bytes] | None) -> None:
        super()._watch(process)
        self._whole._watch(process)
