"""Starts of goat-mcp whose servers are forks of a resident process, also on a machine that has much to do."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.goat import Launch

_FORKS = "FORKS_OF_THIS_TEST"
_LAUNCHER = f"""
import os, time, goat_mcp_launch as it
it.TIMEOUT_S = 30
hand_over = it.hand_over
def patiently():
    while True:
        try:
            found = hand_over()
        except it.NotResident as why:
            if "starting" not in str(why) and "started now" not in str(why):
                raise
            time.sleep(0.05)
            continue
        with open(os.environ["{_FORKS}"], "a") as file:
            file.write(f"{{found[1]}}\\n")
        return found
it.hand_over = patiently
it.main()
"""


@dataclass(frozen=True)
class ResidentLaunch(Launch):
    """Its launcher waits until the resident process has a server for it, and notes which."""

    @classmethod
    def like(cls, launch: Launch, folder: Path) -> ResidentLaunch:
        variables = {"GOAT_MCP_RESIDENT": "1", "XDG_RUNTIME_DIR": str(folder), _FORKS: str(folder / "forks")}
        return cls(launch.folder, launch.workspace, launch.options, {**launch.variables, **variables})

    @property
    def command(self) -> list[str]:
        words = super().command
        return [sys.executable, "-c", _LAUNCHER, *words[words.index("serve") :]]

    @property
    def forks(self) -> list[int]:
        """The servers so far."""
        noted = Path(self.variables[_FORKS])
        return [int(line) for line in noted.read_text().split()] if noted.exists() else []
