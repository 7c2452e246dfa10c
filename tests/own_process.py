"""What this process uses at the moment: memory, children and open files. On Windows only the first two."""

from __future__ import annotations

import psutil


def resident_bytes() -> int:
    return psutil.Process().memory_info().rss


def children() -> set[int]:
    """The processes that this one has started and that have not been waited for."""
    return {child.pid for child in psutil.Process().children()}


def open_files() -> int:
    return psutil.Process().num_fds()
