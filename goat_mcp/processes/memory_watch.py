"""A bound on a process's memory where the kernel does not keep one: somebody looks."""

from __future__ import annotations

import threading
import time

from goat_mcp.core import platform

_PAUSE_S = 0.1


def watch_memory(pid: int, max_bytes: int) -> None:
    """Kill the process when more than that of it is in memory. Returns at once.

    Does nothing if the system keeps the limit that the process has set itself. What is taken between two looks,
    some hundred megabytes, may be above it.
    """
    if not platform.HAS_MEMORY_LIMITS:
        threading.Thread(target=_watch, args=(pid, max_bytes), name="memory-watch", daemon=True).start()


def _watch(pid: int, max_bytes: int) -> None:
    import psutil

    try:
        process = psutil.Process(pid)
        while process.memory_info().rss <= max_bytes:
            time.sleep(_PAUSE_S)
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                return
        process.kill()
    except psutil.Error:  # it is gone
        return
