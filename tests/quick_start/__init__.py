"""Start goat-mcp and our test servers in milliseconds: fork a process that has imported everything already.

Importing goat-mcp takes half a second of computing, importing the SDK's server almost a whole one, and the tests start
thousands of processes. `goat_command` and `script_command` therefore name a small launcher. It hands its arguments,
environment, folder and standard streams to the fork server of this test worker (`server.py`), passes signals on, and
exits as the forked process does. Everything else is a process of its own as always.

What differs: the forked process is no child of the launcher, its command line is another, and its modules are loaded.
Tests of process trees, memory, start-up and the like are marked `real_processes`: then both name Python itself.
`make test-all` starts real processes only, and so does Windows, which has no fork.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.repetitions import is_full

_FOLDER = Path(__file__).parent
_is_real = False


def goat_command(*words: str) -> list[str]:
    """The command line that runs `goat-mcp WORDS`."""
    return module_command("goat_mcp", *words)


def module_command(module: str, *words: str) -> list[str]:
    """The command line that runs a Python module."""
    return [*_python(), "-m", module, *words]


def script_command(script: Path, *words: str) -> list[str]:
    """The command line that runs a Python file of the tests or the examples."""
    return [*_python(), str(script), *words]


def use_real_processes(is_wanted: bool) -> None:
    """From now on, until it is called again."""
    global _is_real
    _is_real = is_wanted


def _python() -> tuple[str, ...]:
    return (sys.executable,) if _is_real or is_full() or not hasattr(os, "fork") else _launcher()


@cache
def _launcher() -> tuple[str, ...]:
    """Starts the fork server of this worker. It ends with the worker, whose end of its standard input closes then."""
    folder = tempfile.TemporaryDirectory(prefix="goat-")
    address = Path(folder.name) / "fork-server"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.quick_start.server", str(address)],
        cwd=_FOLDER.parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None and server.stdout is not None
    assert server.stdout.readline() == b"ready\n"

    def end() -> None:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(30)
        folder.cleanup()

    atexit.register(end)
    return sys.executable, "-I", "-S", str(_FOLDER / "launcher.py"), str(address)
