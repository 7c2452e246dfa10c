"""How much memory a process holds and how much CPU time it took, as Linux tells it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


def resident_mb(pid: int) -> float:
    """Resident set size of one process, in MB."""
    return _field_kb(_PROC / str(pid) / "status", "VmRSS:") / 1024


def peak_resident_mb(pid: int) -> float:
    """The most a process ever held, in MB."""
    return _field_kb(_PROC / str(pid) / "status", "VmHWM:") / 1024


def tree_pss_mb(pid: int) -> float:
    """Proportional set size of a process and its descendants, in MB: pages they share count once."""
    return sum(_pss_kb(member) for member in _tree(pid)) / 1024


def cpu_ms(pid: int) -> float:
    """User and system time that one process has taken so far, in steps of the kernel's clock (10 ms)."""
    after_name = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _pss_kb(pid: int) -> int:
    """Of a server of ours only root may see it: it is not dumpable. Then it is the resident set size, which is more."""
    try:
        return _field_kb(_PROC / str(pid) / "smaps_rollup", "Pss:")
    except PermissionError:
        return _field_kb(_PROC / str(pid) / "status", "VmRSS:")


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for children in (_PROC / str(pid) / "task").glob("*/children"):
        for child in children.read_text().split():
            yield from _tree(int(child))


def _field_kb(file: Path, name: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise LookupError(f"{file} has no {name}")
