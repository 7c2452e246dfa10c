"""A user's home and runtime directory of its own, with a resident process, and hosts that start servers there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.resident.reporter import LAUNCHER
from tests.resident_processes import residents_below

WAIT_S = 60.0
_START = "import goat_mcp_launch as launch; launch.start_resident(launch.runtime_folder(), launch.build_name())"


@dataclass
class Account:
    """What starts with `environment` is this user's."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    resident: int = 0

    def __post_init__(self) -> None:
        for name in ("home", "run", "state", "work"):
            (self.folder / name).mkdir(mode=0o700, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if "GOAT_MCP_" not in name}
        return {
            **inherited,
            "HOME": str(self.folder / "home"),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "GOAT_MCP_STATE_DIR": str(self.folder / "state"),
            "GOAT_MCP_APPROVAL__WAIT_S": "0",
            **self.variables,
        }

    @property
    def sockets(self) -> list[Path]:
        return list((self.folder / "run/goat-mcp").glob("*.sock"))

    def start_reporting(self) -> None:
        """A resident process whose sessions report."""
        folder = self.folder / "run/goat-mcp"
        folder.mkdir(mode=0o700)
        command = [sys.executable, "-m", "tests.cli.resident.reporter", str(folder)]
        process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL)
        self.resident = process.pid
        self._wait_for_socket()

    def start_resident(self) -> None:
        """The real one, as a launcher starts it."""
        self._python(_START)
        self._wait_for_socket()
        (self.resident,) = residents_below(self.folder)

    def end(self) -> None:
        for pid in {self.resident, *residents_below(self.folder)} - {0}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            if self.resident:
                os.waitpid(self.resident, 0)

    def report(
        self,
        *words: str,
        around: Sequence[str] = (),
        program: str = LAUNCHER,
        variables: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """What a server says that a host has started with these words, by way of the command `around`."""
        done = subprocess.run(
            [*around, sys.executable, "-c", program, "serve", *words],
            env=self.environment | dict(variables or {}),
            cwd=self.folder / "work",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.stdout, done
        assert done.stderr.endswith(b"to stderr\n"), done
        found: dict[str, Any] = json.loads(done.stdout)
        return {**found, "exit": done.returncode}

    def _python(self, program: str) -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True, cwd="/").stdout

    def _wait_for_socket(self) -> None:
        ends_at_s = time.monotonic() + WAIT_S
        while not self.sockets:
            assert time.monotonic() < ends_at_s, "the resident process did not come up"
            time.sleep(0.02)
