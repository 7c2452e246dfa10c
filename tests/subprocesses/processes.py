"""Looking at processes from outside, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable

from goat_mcp.subprocesses.process_table import command_line, living_process, living_processes


def alive(pid: int) -> bool:
    return living_process(pid) is not None


def running(*words: str) -> list[int]:
    """Processes whose whole command line is `words`."""
    return [process.pid for process in living_processes() if command_line(process.pid) == " ".join(words)]


def wait_until(condition: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()
