"""The processes that a measurement starts, also those that leave their parent, as the resident process does."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.workbench import CannotMeasure

_PROC = Path("/proc")
_SET_CHILD_SUBREAPER = 36
_TERM_TIMEOUT_S, _KILL_TIMEOUT_S = 15.0, 5.0
_RESIDENT = b"goat_mcp.cli.resident"

Started = Callable[[], list[int]]
"""What was started since some moment and still runs."""


@contextmanager
def started_processes() -> Generator[Started]:
    """Lists what was started within the block and still runs. The end of the block ends it.

    Whoever loses its parent meanwhile becomes a child of ours instead of the system's first process. How a `Popen` of
    the block has ended is known in the block only.
    """
    before = set(tree(os.getpid()))
    _adopt_orphans(True)

    def started() -> list[int]:
        return [pid for pid in tree(os.getpid()) if pid not in before]

    try:
        yield started
    finally:
        _end(started)
        for pid in set(_children(os.getpid())) - before:
            with suppress(ChildProcessError):  # of those that we adopted nobody else takes notice
                os.waitpid(pid, os.WNOHANG)
        _adopt_orphans(False)
        if left := started():
            raise CannotMeasure(f"processes {left} could not be ended")


def tree(pid: int) -> list[int]:
    """A process and its descendants that run; none that have ended and were not waited for."""
    return list(_running(pid))


def command(pid: int) -> list[bytes]:
    """Its words; none if it has just ended."""
    with suppress(OSError):
        return (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    return []


def resident_processes(started: Started) -> list[int]:
    """One for each build; the servers that they fork have the same words."""
    return [pid for pid in started() if is_resident(pid) and not is_resident(_parent(pid))]


def forked_servers(started: Started) -> list[int]:
    """What resident processes have forked, oldest first."""
    return sorted((pid for pid in started() if is_resident(pid) and is_resident(_parent(pid))), key=_started_at)


def is_resident(pid: int) -> bool:
    """Whether it is the resident process or one that this has forked."""
    return any(word.startswith(_RESIDENT) for word in command(pid))


def _running(pid: int) -> Iterator[int]:
    if _field(pid, 0) not in ("", "Z", "X"):
        yield pid
    for child in _children(pid):
        yield from _running(child)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for file in (_PROC / str(pid) / "task").glob("*/children"):
        with suppress(OSError):  # it has just ended
            found += map(int, file.read_text().split())
    return found


def _parent(pid: int) -> int:
    return int(_field(pid, 1) or 0)


def _started_at(pid: int) -> int:
    return int(_field(pid, 19) or 0)


def _field(pid: int, number: int) -> str:
    """Of `/proc/PID/stat`, counted from the one after the name; empty if the process is gone."""
    with suppress(OSError):
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[number]
    return ""


def _adopt_orphans(yes: bool) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, int(yes), 0, 0, 0):
        raise CannotMeasure(f"orphans cannot be adopted: {os.strerror(ctypes.get_errno())}")


def _end(started: Started) -> None:
    for number, timeout_s in ((signal.SIGTERM, _TERM_TIMEOUT_S), (signal.SIGKILL, _KILL_TIMEOUT_S)):
        deadline = time.monotonic() + timeout_s
        signalled: set[int] = set()
        while (left := started()) and time.monotonic() < deadline:
            for pid in set(left) - signalled:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            signalled.update(left)
            time.sleep(0.02)
