"""The resident processes that tests have started: each start of `goat-mcp serve` with a home of its own starts one, and
it would stay for ten minutes."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

MODULE = "goat_mcp.cli.resident.linux_fork_server"


def residents_below(folder: Path) -> list[int]:
    """Those whose sockets are below `folder`. Their sessions have the same command line."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = process.joinpath("cmdline").read_bytes().split(b"\0")
            if MODULE.encode() in words and str(folder).encode() in words[words.index(MODULE.encode()) + 1]:
                found.append(int(process.name))
    return found


def end_residents_below(folder: Path) -> None:
    for pid in residents_below(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
