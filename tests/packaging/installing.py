"""Install the built wheel as a user does, into a home of its own, and run it there: not from the repository, and with
nothing of the environment of whoever runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from scripts.distributions import CONSTRAINTS

SHORT_PATH = "/usr/bin:/bin"
TIMEOUT_S = 300
INSTALLERS = ("uv", "pipx")


@dataclass(frozen=True)
class MadeUpHome:
    """A home directory with a program folder, as `uv tool` and pipx fill it."""

    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / ".local" / "bin" / "goat-mcp"

    def install(self, installer: str, wheel: Path) -> None:
        if installer == "uv":
            self.run([find_uv_bin(), "tool", "install", str(wheel)], installing=True)
        else:
            # Beside uv, pipx installs with uv.
            self.run([sys.executable, "-m", "pipx", "install", "--backend", "pip", str(wheel)], installing=True)

    def run(self, command: list[str], *, installing: bool = False) -> str:
        """What it prints. The working directory is `/`."""
        environment = {"HOME": str(self.folder), "PATH": SHORT_PATH}
        done = subprocess.run(
            command,
            env=environment | (installing_environment() if installing else {}),
            cwd=os.sep,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def installing_environment() -> dict[str, str]:
    """Where packages come from on this machine, the versions that are tested, and one cache for all downloads."""
    of_this_machine = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    python = str(base_python())
    return {
        "UV_SYSTEM_CERTS": "1",
        **of_this_machine,
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "PIP_CONSTRAINT": str(CONSTRAINTS),
        "UV_CONSTRAINT": str(CONSTRAINTS),
        "UV_PYTHON": python,
        "UV_PYTHON_DOWNLOADS": "never",
        "PIPX_DEFAULT_PYTHON": python,
    }


def base_python() -> Path:
    """A Python of the system, not that of our environment: an installed program must not depend on it."""
    return Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
