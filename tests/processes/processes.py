"""Looking at processes from outside, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio
import pytest

from goat_mcp.core import platform
from goat_mcp.processes.process_table import command_line, living_process, living_processes
from tests.repetitions import times

PATIENCE_S = times(60, in_full_run=0)
"""What a busy machine is given. At night, when nothing else runs, the bounds that a test names are held to."""


LINUX = "linux"
OTHER = "without /proc and pidfd"
LINUX_ONLY = (
    "HAS_PROC",
    "HAS_PIDFD",
    "HAS_MEMFD",
    "HAS_SIGNAL_SENDERS",
    "HAS_CGROUPS",
    "HAS_MEMORY_LIMITS",
)
"""What processes are handled with on Linux alone, as `core/platform` calls it."""


def without_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LINUX_ONLY:
        monkeypatch.setattr(platform, name, False)


_ASSIGNMENTS = "\n".join(f"platform.{name} = False" for name in LINUX_ONLY)
WITHOUT_LINUX = f"from goat_mcp.core import platform\n{_ASSIGNMENTS}\n"
"""The same for a program: its first lines."""


def alive(pid: int) -> bool:
    return living_process(pid) is not None


def running(*words: str) -> list[int]:
    """Processes whose whole command line is `words`."""
    return [process.pid for process in living_processes() if command_line(process.pid) == " ".join(words)]


def wait_until(condition: Callable[[], bool], within_s: float = 60) -> bool:
    deadline = time.monotonic() + max(within_s, PATIENCE_S)
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


async def soon(condition: Callable[[], bool], within_s: float = 60) -> bool:
    """The same without holding up the event loop, which may have to bring it about."""
    with anyio.move_on_after(max(within_s, PATIENCE_S)):
        while not condition():  # noqa: ASYNC110  # other processes bring it about
            await anyio.sleep(0.02)
    return condition()
