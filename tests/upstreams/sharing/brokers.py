"""Brokers for tests: in a runtime folder of the test's own, and gone after it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from goat_mcp.upstreams.sharing.broker_start import broker_name
from goat_mcp.upstreams.sharing.runtime_folder import connected, peer_of
from goat_mcp.upstreams.sharing.shared_connect import Sharing
from tests.quick_start import module_command
from tests.upstreams.test_stdio_upstreams import is_alive

GONE_WITHIN_S = 30.0


@dataclass(frozen=True)
class Brokers:
    """Where the broker of this test is found."""

    runtime: Path

    @property
    def folder(self) -> Path:
        return self.runtime / "goat-mcp"

    @property
    def pid(self) -> int:
        """The one that listens now. Raises `OSError` if none does."""
        with connected(self.folder, broker_name()) as socket:
            return peer_of(socket)[0]

    def start(self) -> None:
        """So that no first list waits for it."""
        self.folder.mkdir(mode=0o700)
        quick().start(self.folder, broker_name())
        until(lambda: bool(self.sockets()))

    def sockets(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []


@contextmanager
def private_runtime(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Brokers]:
    """Sockets are made below `folder`. What still listens there afterwards is ended."""
    brokers = Brokers(folder / "run")
    brokers.runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(brokers.runtime))
    try:
        yield brokers
    finally:
        try:
            pid = brokers.pid
        except OSError:
            pid = 0
        if pid:
            os.kill(pid, signal.SIGTERM)
            until(lambda: not is_alive(pid))


def quick(idle_s: float = 600.0, setting: str = "named") -> Sharing:
    """Brokers that start in milliseconds and end after so long."""

    def start(folder: Path, name: str) -> None:
        words = module_command("goat_mcp.cli.resident.linux_broker", str(folder), name, str(idle_s))
        subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
        )

    return Sharing("stateless" if setting == "stateless" else "named", start)


def until(holds: Callable[[], bool], max_wait_s: float = GONE_WITHIN_S) -> None:
    give_up_s = time.monotonic() + max_wait_s
    while not holds():
        assert time.monotonic() < give_up_s
        time.sleep(0.02)


def pids(file: Path) -> list[int]:
    """The processes of `shared.py` that have ever started."""
    return [int(line) for line in file.read_text().split()] if file.exists() else []
