"""Which processes are alive, who started them, and whether a test left some behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

POLL_S = 0.2


@dataclass(frozen=True)
class Seen:
    """A process that was alive. The start time tells it from a later one with the same number."""

    pid: int
    started_at: str
    command: str


def descendants(pid: int) -> list[Seen]:
    """All children of `pid`, theirs, and so on."""
    children: dict[int, list[Seen]] = {}
    for parent, seen in _all():
        children.setdefault(parent, []).append(seen)
    found: list[Seen] = []
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.append(child)
            waiting.append(child.pid)
    return found


def mentioning(text: str) -> list[Seen]:
    """Processes with `text` in their command line, environment or working directory; not this one or its parents."""
    ours = _ancestors(os.getpid())
    return [seen for _, seen in _all() if seen.pid not in ours and _mentions(seen.pid, text)]


def alive(processes: Iterable[Seen]) -> list[Seen]:
    now = {(seen.pid, seen.started_at) for _, seen in _all()}
    return [seen for seen in processes if (seen.pid, seen.started_at) in now]


def left_after(processes: Iterable[Seen], text: str, within_s: float, *, spared: int = 0) -> list[Seen]:
    """What of `processes`, or mentioning `text`, still lives after at most `within_s`; returns as soon as none does.

    The process `spared` is to live on.
    """
    known = [seen for seen in processes if seen.pid != spared]
    ends_at_s = time.monotonic() + within_s
    while True:
        # Looking for the text reads much more, so it waits until those known are gone.
        left = alive(known)
        if not left or time.monotonic() > ends_at_s:
            others = {seen for seen in mentioning(text) if seen.pid != spared}
            left = sorted({*left, *others}, key=lambda seen: seen.pid)
        if not left or time.monotonic() > ends_at_s:
            return left
        time.sleep(POLL_S)


def end(process: subprocess.Popen[str]) -> None:
    """Ask a process to end, then make it. What it writes at its end is there afterwards."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(40)


def kill_all(processes: Iterable[Seen]) -> None:
    """Clean up after a failed test."""
    for seen in alive(processes):
        try:
            os.kill(seen.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _all() -> list[tuple[int, Seen]]:
    """(parent, process) for everything that is not a zombie."""
    found: list[tuple[int, Seen]] = []
    for process in psutil.process_iter(("pid", "ppid", "status", "cmdline", "create_time")):
        info = process.info  # pyright: ignore[reportUnknownMemberType]  # by the names above
        if info["status"] not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            command = " ".join(info["cmdline"] or ())
            found.append((info["ppid"], Seen(info["pid"], str(info["create_time"]), command)))
    return found


def _mentions(pid: int, text: str) -> bool:
    try:
        process = psutil.Process(pid)
        if process.cwd().startswith(text):
            return True
        words = (*process.cmdline(), *(f"{name}={value}" for name, value in process.environ().items()))
        return any(text in word for word in words)
    except (psutil.Error, OSError):
        return False


def _ancestors(pid: int) -> set[int]:
    parents = {seen.pid: parent for parent, seen in _all()}
    found = {pid}
    while pid := parents.get(pid, 0):
        found.add(pid)
    return found
