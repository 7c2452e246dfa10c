"""Find the broker of this build and user, or start it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread

from goat_mcp.core import posix
from goat_mcp.core.version import __version__
from goat_mcp.processes.linux_confinement import why_confined
from goat_mcp.state.file_lock import try_lock
from goat_mcp.upstreams.faults import NotShared
from goat_mcp.upstreams.sharing.runtime_folder import IS_SUPPORTED, build_id, connected, runtime_folder

StartBroker = Callable[[Path, str], None]
"""Has `run_broker` run in a process of its own, with this folder and name of its socket. Blocks until that listens; a
broker that finds the name taken ends by itself. Raises `OSError`, `subprocess.SubprocessError`."""
START_WITHIN_S = 15.0
_LOOK_S = 0.02
_MODULE = "goat_mcp.cli.resident.linux_broker"
_PASSED_ON = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "USER", "LOGNAME", "XDG_RUNTIME_DIR"})


def broker_name() -> str:
    """The name of the socket: another one for each build."""
    return f"broker-{__version__}-{build_id()[:16]}"


def start_broker(folder: Path, name: str) -> None:
    """Start it from this Python: detached, with nothing of ours open and nothing of a host's in its environment.

    The process started here forks and ends, so the broker is no child of ours and does not end with us.
    """
    environment = {variable: value for variable, value in os.environ.items() if variable in _PASSED_ON}
    done = subprocess.run(
        [sys.executable, "-m", _MODULE, str(folder), name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        start_new_session=True,
        check=False,
    )
    if done.returncode:
        raise ChildProcessError(f"it ended with status {done.returncode}; the folder of its socket is {folder}")


async def broker_connection(start: StartBroker) -> socket.socket:
    """A connection to the broker, which is started if it does not run. Raises `NotShared`."""
    if not IS_SUPPORTED:
        raise NotShared("this system has no sockets that tell who is at the other end")
    try:
        if why := why_confined("/proc/self"):
            raise NotShared(f"this process is confined, and the broker may not be: {why}")
        folder, name = runtime_folder(), await anyio.to_thread.run_sync(broker_name)
    except OSError as problem:
        raise NotShared(f"there is no folder for its socket: {problem}") from None
    until_s = time.monotonic() + START_WITHIN_S
    while True:
        try:
            return connected(folder, name)
        except (FileNotFoundError, ConnectionRefusedError, BlockingIOError) as none:
            problem = none
        except OSError as broken:
            raise NotShared(f"the broker cannot be reached: {broken}") from None
        if time.monotonic() >= until_s:
            raise NotShared(f"the broker did not start within {START_WITHIN_S:g} s: {problem}")
        if not isinstance(problem, BlockingIOError):
            await _start(start, folder, name)
        await anyio.sleep(_LOOK_S)


async def _start(start: StartBroker, folder: Path, name: str) -> None:
    """Start it unless another session is about to. Raises `NotShared`."""
    lock = os.open(folder, os.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    try:
        if try_lock(lock) and not _listens(folder, name):
            await anyio.to_thread.run_sync(start, folder, name)
    except (OSError, subprocess.SubprocessError) as problem:
        raise NotShared(f"the broker cannot be started: {problem}") from None
    finally:
        os.close(lock)


def _listens(folder: Path, name: str) -> bool:
    """Whether it was started since we have looked."""
    try:
        connected(folder, name).close()
    except OSError:
        return False
    return True
