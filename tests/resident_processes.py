"""The resident processes that tests have started: each start of `goat-mcp serve` with a home of its own starts one, and
it would stay for ten minutes."""

from __future__ import annotations

import getpass
import os
import signal
import sys
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


def residents_of_this_user() -> set[int]:
    """Those of this Python whose sockets are where the user's own are: no test may start one."""
    if sys.platform != "linux":
        return set()
    places = [Path(f"~{getpass.getuser()}").expanduser() / ".cache/goat-mcp/run"]
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        places.append(Path(runtime, "goat-mcp"))
    own = f"{sys.executable}\0".encode()
    found = (pid for place in places for pid in residents_below(place))
    return {pid for pid in found if _command_line(pid).startswith(own)}


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def end_residents_below(folder: Path) -> None:
    for pid in residents_below(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
