"""The system's processes at one moment, read from `/proc`, or by psutil if there is none.

psutil takes five times as long as our reader of `/proc`, and the table is read at the end of commands.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from goat_mcp.core import platform, posix

if TYPE_CHECKING:  # 20 ms, and Linux never needs it
    import psutil

AnswerT = TypeVar("AnswerT")

_PROC = "/proc"
_MICROSECONDS = 1_000_000
_CLOCK_SLACK_S = 60.0


@dataclass(frozen=True, slots=True)
class Process:
    """One process that still runs. `started` only orders processes and tells a reused number apart.

    `group` and `session` are 0 if the system has none, or does not say.
    """

    pid: int
    parent: int
    group: int
    session: int
    name: str
    started: int


def start_clock() -> int:
    """Now, on the clock of `Process.started`. Early, to be safe: without `/proc` by what a clock may be set back."""
    if platform.HAS_PROC:
        return int(posix.seconds_since_boot() * posix.sysconf("SC_CLK_TCK")) - 5
    return int((time.time() - _CLOCK_SLACK_S) * _MICROSECONDS)


def living_processes() -> list[Process]:
    """Every process but zombies, which have ended and only wait for their parent."""
    if platform.HAS_PROC:
        with os.scandir(_PROC) as entries:
            pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    else:
        import psutil

        pids = psutil.pids()
    return [process for pid in pids if (process := living_process(pid)) is not None]


def living_process(pid: int) -> Process | None:
    """One process by its number; None when it is gone or a zombie."""
    if not platform.HAS_PROC:
        return _from_psutil(pid)
    try:
        text = Path(_PROC, str(pid), "stat").read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
    # The name is in parentheses and may itself hold blanks and parentheses.
    before, _, after = text.rpartition(")")
    fields = after.split()
    if fields[0] in ("Z", "X"):
        return None
    return Process(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        name=before.partition("(")[2],
        started=int(fields[19]),
    )


def is_stopped(pid: int) -> bool:
    """By SIGSTOP, or as a job of a shell. Linux only."""
    try:
        return Path(_PROC, str(pid), "stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
    except OSError:
        return False


def ancestors() -> Iterator[int]:
    """The numbers of the processes that this one was started by, the nearest first."""
    seen = {0, os.getpid()}
    pid = os.getppid()
    while pid not in seen:
        yield pid
        seen.add(pid)
        found = living_process(pid)
        pid = found.parent if found is not None else 0


def this_process() -> str:
    """A name for this process that no other one ever has: numbers are given again."""
    return _name_of(os.getpid())


def is_alive(name: str) -> bool:
    """Whether the process that `this_process` named still runs."""
    pid = name.partition("-")[0]
    return pid.isdigit() and _name_of(int(pid)) == name


class ProcessNames:
    """Names of processes that share a state. `machine` tells those of one machine from those of others, empty if all
    are of this one.

    Of a process of another machine nobody here knows whether it lives: it counts as alive.
    """

    def __init__(self, machine: str = "") -> None:
        self._suffix = f"@{machine}" if machine else ""

    @property
    def mine(self) -> str:
        return this_process() + self._suffix

    def of_session(self, session_key: str) -> str:
        """Which process a session belongs to: one that any server serves belongs to all that share the state."""
        return "all" if self._suffix and session_key.startswith("principal:") else self.mine

    def is_here(self, name: str) -> bool:
        """Whether it is, or was, of this machine."""
        return not self._suffix or name.endswith(self._suffix)

    def is_alive(self, name: str) -> bool:
        return not self.is_here(name) or is_alive(name.removesuffix(self._suffix))


def _name_of(pid: int) -> str:
    found = living_process(pid)
    return f"{pid}-{found.started if found is not None else ''}"


def _from_psutil(pid: int) -> Process | None:
    import psutil

    try:
        # A new one each time: what `process_iter` keeps may be of an earlier process with the same number.
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            return Process(
                pid=pid,
                parent=process.ppid(),
                group=posix.getpgid(pid) if platform.HAS_PROCESS_GROUPS else 0,
                session=posix.getsid(pid) if platform.HAS_PROCESS_GROUPS else 0,
                name=process.name(),
                started=round(process.create_time() * _MICROSECONDS),
            )
    except (psutil.Error, OSError):
        return None


def command_line(pid: int) -> str:
    """A process's arguments, joined by blanks; empty when they cannot be read."""
    if not platform.HAS_PROC:
        return " ".join(_asked(pid, lambda process: process.cmdline()) or ())
    try:
        return Path(_PROC, str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def environment_contains(pid: int, text: bytes) -> bool:
    """Whether `text` occurs in the environment a process was started with.

    macOS does not show that of its own programs (`/bin/sleep`), nor those of other users: then False.
    """
    if not platform.HAS_PROC:
        variables = _asked(pid, lambda process: process.environ()) or {}
        return any(text in os.fsencode(f"{name}={value}") for name, value in variables.items())
    try:
        return text in Path(_PROC, str(pid), "environ").read_bytes()
    except OSError:
        return False


def _asked(pid: int, question: Callable[[psutil.Process], AnswerT]) -> AnswerT | None:
    """What psutil says; None if the process is gone or may not be looked at."""
    import psutil

    try:
        return question(psutil.Process(pid))
    except (psutil.Error, OSError):
        return None


def has_open(pid: int, link: str) -> bool:
    """Whether one of a process's descriptors is `link`, e.g. `pipe:[4711]`. Only `/proc` says so: else False."""
    if not platform.HAS_PROC:
        return False
    folder = f"{_PROC}/{pid}/fd"
    try:
        with os.scandir(folder) as entries:
            return any(_link_of(entry.path) == link for entry in entries)
    except OSError:
        return False


def _link_of(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115  # thousands of these; a Path each would cost more than the call
    except OSError:
        return ""
