"""How much memory a process holds and how much CPU time it took, as Linux reports it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from bench.processes import tree

_PROC = Path("/proc")
_NS_PER_MS = 1_000_000


def resident_mb(pid: int) -> float:
    """Resident set size of one process, in MB."""
    return _memory_mb(pid, "status", {"VmRSS"})


def peak_resident_mb(pid: int) -> float:
    """The most a process ever held, in MB."""
    return _memory_mb(pid, "status", {"VmHWM"})


def unshared_mb(pid: int) -> float:
    """Unique set size of one process, in MB: what the system gets back if it ends. Raises `PermissionError` for a
    server of ours if we are not root: it is not dumpable."""
    return _memory_mb(pid, "smaps_rollup", {"Private_Clean", "Private_Dirty"})


def pss_mb(pids: Iterable[int]) -> float:
    """Proportional set size of processes, in MB: what they share counts once."""
    return sum(_one_pss_mb(pid) for pid in pids)


def tree_pss_mb(pid: int) -> float:
    """Proportional set size of a process and its descendants, in MB."""
    return pss_mb(tree(pid))


def cpu_ms(pid: int) -> float:
    """User and system time that one process has taken so far. Linux counts it in steps of 10 ms with the threads that
    have ended, and exactly without them: both are at most the truth."""
    after_name = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    stepwise = (int(after_name[11]) + int(after_name[12])) * 1000 / os.sysconf("SC_CLK_TCK")
    exact = sum(int(file.read_text().split()[0]) for file in (_PROC / str(pid) / "task").glob("*/schedstat"))
    return max(stepwise, exact / _NS_PER_MS)


def memory_kb(text: str, names: Collection[str]) -> int:
    """The sum of these lines of a file such as `status` or `smaps_rollup`, each of which is there once."""
    found = {line.partition(":")[0]: line.partition(":")[2].split() for line in text.splitlines()}
    if missing := set(names) - found.keys():
        raise LookupError(f"no {', '.join(sorted(missing))} among {', '.join(found)}")
    return sum(int(found[name][0]) for name in names)


def _one_pss_mb(pid: int) -> float:
    """If we may not see it, it is the resident set size, which is more."""
    try:
        return _memory_mb(pid, "smaps_rollup", {"Pss"})
    except PermissionError:
        return resident_mb(pid)


def _memory_mb(pid: int, file: str, names: Collection[str]) -> float:
    return memory_kb((_PROC / str(pid) / file).read_text(), names) / 1024
