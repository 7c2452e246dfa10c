"""SIGTERM from outside stops the server; SIGTERM from one of its own commands does not.

`pkill -f python` in a command must not end the server that runs it. Only Linux tells who sent a signal. Elsewhere every
SIGTERM counts: a server that its host cannot stop would be worse than one that a command can. What is left there is
`commands/self_kill`, which refuses a script that would plainly end the server.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from goat_mcp.core import platform, posix
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.process_table import living_process

_POLL_S = 0.5
_AGAIN_WITHIN_S = 10.0


class StopSignals:
    """Waits for SIGTERM in a thread of its own and calls `on_stop` when it counts.

    The kernel names the sender only to who waits for a *blocked* signal, so `block()` has to run in the main thread
    before any other thread starts (threads inherit the mask). Children would inherit it too: start each of them
    within `unblocked_for_children()`, or they do not hear SIGTERM.

    A sender that descends from us is ignored. One that is gone before we could look (`pkill` lives for a
    millisecond) while a command runs or has just run, or that is not told because a child is just being started, is
    ignored once and counts when a second signal comes within 10 s.
    """

    def __init__(self, on_stop: Callable[[], None], guard: ProcessGuard) -> None:
        self._on_stop = on_stop
        self._guard = guard
        self._last_doubtful_s = float("-inf")
        self._closed = threading.Event()

    @staticmethod
    def block() -> bool:
        """Block SIGTERM in the calling thread. Returns False, and does nothing, where senders are not told."""
        if not platform.HAS_SIGNAL_SENDERS:
            return False
        posix.set_signal_mask(posix.SIG_BLOCK, {signal.SIGTERM})
        return True

    def start(self) -> None:
        """Wait in a daemon thread from now on. `on_stop` is called in that thread, at most once."""
        # A SIGTERM that comes while a child is being started names no sender, and may be that child's first act.
        signal.signal(signal.SIGTERM, _WhileUnblocked(self._in_doubt))
        threading.Thread(target=self._wait, name="stop-signals", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _wait(self) -> None:
        while not self._closed.is_set():
            sender = posix.wait_for_signal(signal.SIGTERM, _POLL_S)
            if sender is not None:
                self.sent_by(sender)

    def sent_by(self, sender: int) -> None:
        """A SIGTERM of this process has come, here or to the launcher that stands in for us."""
        if self._counts(sender):
            self._stop()

    def _stop(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._on_stop()

    def _counts(self, sender: int) -> bool:
        if sender == 0 or sender == os.getpid():
            return True  # the kernel, somebody outside our PID namespace, or ourselves
        descends = self._descends(sender)
        if descends is not None:
            return not descends
        return not self._guard.commands_run or self._is_second()

    def _in_doubt(self) -> None:
        if self._is_second():
            self._stop()

    def _is_second(self) -> bool:
        """Whether another signal in doubt came a short time ago: who means it sends it again."""
        now_s = time.monotonic()
        again = now_s - self._last_doubtful_s < _AGAIN_WITHIN_S
        self._last_doubtful_s = now_s
        return again

    def _descends(self, pid: int) -> bool | None:
        """Whether a process was started by us or by one of our descendants; None when it is gone."""
        process = living_process(pid)
        if process is None:
            return None
        if self._guard.has_marked(pid):
            return True
        while process is not None and process.pid > 1:
            if process.parent == os.getpid():
                return True
            process = living_process(process.parent)
        # Where it has ended while it was looked at, its mark could not be read, nor who its parents were.
        return None if living_process(pid) is None else False


class _WhileUnblocked:
    """The handler for a SIGTERM that comes just while a child is started. That it is in place says that SIGTERM is
    otherwise blocked."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._stop()


@contextmanager
def unblocked_for_children() -> Generator[None]:
    """Start a child within this, so that it hears SIGTERM. Costs two system calls; does nothing where not needed.

    It may be held over an `await`, also by several tasks at a time.
    """
    if not platform.HAS_SIGNAL_MASKS or not isinstance(signal.getsignal(signal.SIGTERM), _WhileUnblocked):
        yield
        return
    posix.set_signal_mask(posix.SIG_UNBLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        posix.set_signal_mask(posix.SIG_BLOCK, {signal.SIGTERM})
