"""A home with a runtime directory of its own, the windows that start goat-mcp there, and the resident process they
share, which ends with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.processes import POLL_S
from tests.e2e.wire import Wire
from tests.resident_processes import residents_below

WARM_WITHIN_S = 60.0
SOCKET_WITHIN_S = 5.0
RESIDENT = "resident"


@dataclass
class Home:
    """One user's home. `python` is the program that runs goat-mcp, with its options."""

    folder: Path
    python: Sequence[str] = (sys.executable,)
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def runtime(self) -> Path:
        return self.folder / "run"

    @property
    def sockets(self) -> Path:
        return self.runtime / "goat-mcp"

    @property
    def environment(self) -> dict[str, str]:
        # Everything a test starts there has the folder's name in its environment, so none is missed.
        return {
            "HOME": str(self.folder),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PATH": os.environ["PATH"],
            **self.variables,
        }

    def window(self, *words: str, folder: Path | None = None, **variables: str) -> Wire:
        """A host's server, handshake not yet done."""
        workspace = folder or self.folder / "ws"
        workspace.mkdir(parents=True, exist_ok=True)
        command = [*self.python, "-m", "goat_mcp", "serve", *words]
        return Wire(command, {**self.environment, **variables}, workspace, self.folder / "stderr")

    @contextmanager
    def server(self, *words: str, folder: Path | None = None, **variables: str) -> Generator[Wire]:
        with self.window(*words, folder=folder, **variables) as wire:
            wire.handshake()
            yield wire

    @contextmanager
    def fork(self, *words: str, folder: Path | None = None, **variables: str) -> Generator[Wire]:
        """A server that is a fork of the resident process. A busy machine may need more than one try."""
        ends_at_s = time.monotonic() + WARM_WITHIN_S
        while True:
            with self.server(*words, folder=folder, **variables) as wire:
                if (how := how_started(wire)) == RESIDENT:
                    yield wire
                    return
            assert time.monotonic() < ends_at_s, how
            self._await_socket()

    def _await_socket(self) -> None:
        """Until a resident process listens, which takes it a second of computing: each start before that would be one
        more server that imports everything beside it."""
        ends_at_s = time.monotonic() + SOCKET_WITHIN_S
        time.sleep(POLL_S)
        while time.monotonic() < ends_at_s and not any(self.sockets.glob("*.sock")):
            time.sleep(POLL_S)

    def warm(self) -> int:
        """The number of a resident process that serves."""
        with self.fork() as wire:
            return psutil.Process(server_pid(wire)).ppid()

    @contextmanager
    def resident(self, *, before: str = "", idle_s: float = 600.0, look_s: float = 600.0) -> Generator[psutil.Process]:
        """A resident process that runs the statements `before` first, and serves."""
        names = "import goat_mcp_launch as it; print(it.runtime_folder(), it.build_name())"
        folder, name = self.run("-c", names).split()
        program = f"import sys, os, time\nfrom goat_mcp.cli.resident import linux_fork_server as it\n{before}\n"
        program += f"it.main(*sys.argv[1:], idle_s={idle_s}, look_s={look_s})"
        # The lock is descriptor 3, as the launcher hands it over.
        begin = 'exec 3<>"$0" && flock -n 3 && exec "$@"'
        words = ["sh", "-c", begin, f"{folder}/{name}.lock", *self.python, "-c", program, folder, name]
        process = psutil.Popen(words, cwd="/", env=self.environment, stderr=(self.folder / "resident").open("ab"))
        try:
            wait_until(lambda: Path(folder, f"{name}.sock").exists() or process.poll() is not None)
            yield process
        finally:
            with suppress(psutil.NoSuchProcess):
                for child in process.children():
                    child.kill()
                process.kill()
            process.wait()

    def run(self, *words: str) -> str:
        """What a Python of this home prints."""
        return subprocess.run(
            [*self.python, *words], cwd="/", env=self.environment, check=True, capture_output=True, text=True
        ).stdout

    def residents(self) -> list[int]:
        """The resident processes, without their forks."""
        found = residents_below(self.folder)
        return [pid for pid in found if _parent(pid) not in found and not _is_fork(pid)]

    def end(self) -> None:
        for pid in residents_below(self.folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def home(folder: Path, python: Sequence[str] = (sys.executable,), **variables: str) -> Generator[Home]:
    one = Home(folder, python, variables)
    one.runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        yield one
    finally:
        one.end()


def status(wire: Wire) -> dict[str, Any]:
    contents = wire.request("resources/read", {"uri": "goat://status"})["result"]["contents"]
    return json.loads(contents[0]["text"])


def how_started(wire: Wire) -> str:
    return status(wire)["how_started"]


def server_pid(wire: Wire) -> int:
    return status(wire)["pid"]


def wait_until(is_so: Callable[[], object], within_s: float = 30.0) -> None:
    ends_at_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < ends_at_s, "it did not come about in time"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether it runs; one that nobody has waited for yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _parent(pid: int) -> int:
    try:
        return psutil.Process(pid).ppid()
    except psutil.NoSuchProcess:
        return 0


def _is_fork(pid: int) -> bool:
    """Whether it took a host's place: it leads a session of its own, as a resident process does not."""
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return True
