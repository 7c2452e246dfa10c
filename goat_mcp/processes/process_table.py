"""The system's processes at one moment, read from `/proc` or, where there is none, from `ps`."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_PROC = "/proc"
HAS_PROC = Path(_PROC, "self", "stat").exists()


@dataclass(frozen=True, slots=True)
class Process:
    """One process that still runs. `started` only orders processes and tells a reused number apart."""

    pid: int
    parent: int
    group: int
    session: int
    name: str
    started: int


def living_processes() -> list[Process]:
    """Every process but zombies, which have ended and only wait for their parent."""
    if not HAS_PROC:
        return _from_ps()
    with os.scandir(_PROC) as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    return [process for pid in pids if (process := living_process(pid)) is not None]


def living_process(pid: int) -> Process | None:
    """One process by its number; None when it is gone or a zombie."""
    if not HAS_PROC:
        return next((process for process in _from_ps() if process.pid == pid), None)
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


def command_line(pid: int) -> str:
    """A process's arguments, joined by blanks; empty when they cannot be read."""
    try:
        return Path(_PROC, str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def environment_contains(pid: int, text: bytes) -> bool:
    """Whether `text` occurs in the environment a process was started with."""
    try:
        return text in Path(_PROC, str(pid), "environ").read_bytes()
    except OSError:
        return False


def has_open(pid: int, link: str) -> bool:
    """Whether one of a process's descriptors is `link`, e.g. `pipe:[4711]`."""
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


def _from_ps() -> list[Process]:
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,pgid=,sess=,stat=,comm="],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=5,
        check=False,
    )
    found: list[Process] = []
    for line in listing.stdout.splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and not fields[4].startswith("Z"):
            # Some systems print the session as a pointer; 0 then matches nothing.
            session = int(fields[3]) if fields[3].isdigit() else 0
            found.append(Process(int(fields[0]), int(fields[1]), int(fields[2]), session, fields[5], 0))
    return found
