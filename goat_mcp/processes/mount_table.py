"""What is mounted here, as the kernel lists it. Linux; elsewhere nothing is listed."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass

_MOUNTINFO = "/proc/self/mountinfo"
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class MountEntry:
    """One mount. `root` is the directory of the file system that is seen at `path`; `options` are those of the file
    system, not of the mount."""

    root: str
    path: str
    file_system: str
    options: tuple[str, ...]


def mounts_of_kind(file_systems: Collection[str], file: str = _MOUNTINFO) -> list[MountEntry]:
    """The mounts of these kinds of file systems, e.g. `proc`, in the order they were made.

    None if the list cannot be read. Hosts of containers have thousands of others: these cost a microsecond each.
    """
    try:
        with open(file, "rb") as opened:  # noqa: PTH123  # read for each sandboxed command
            lines = os.fsdecode(opened.read()).splitlines()
    except OSError:
        return []
    found: list[MountEntry] = []
    for line in lines:
        # "36 35 98:0 /root /path rw,noatime master:1 - ext3 /dev/root rw,errors=continue"; man 5 proc_pid_mountinfo
        before, _, after = line.rpartition(" - ")
        file_system, _, rest = after.partition(" ")
        if file_system in file_systems:
            fields = before.split(" ")
            found.append(
                MountEntry(_text(fields[3]), _text(fields[4]), file_system, tuple(rest.split(" ")[-1].split(",")))
            )
    return found


def _text(field: str) -> str:
    """The path: blanks, tabs, line ends and backslashes in it are written as `\\040`."""
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 8)), field) if "\\" in field else field
