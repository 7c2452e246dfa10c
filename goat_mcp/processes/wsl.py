"""The distribution of WSL that we run in, and what the Windows around it answers. Elsewhere there is none."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.core import platform
from goat_mcp.core.wsl_paths import WslPaths

CONFIG_FILE = Path("/etc/wsl.conf")
_SYSTEM32 = "c/Windows/System32"
_TIMEOUT_S = 10.0
"""The first program of Windows that a distribution starts takes seconds on a busy machine."""
_OF_WINDOWS = re.compile(r"[A-Za-z]:|\\|file:", re.I)


@dataclass(frozen=True)
class Wsl:
    """Programs of Windows are started by interop, which can be off or broken: then nothing answers."""

    paths: WslPaths

    @property
    def drives(self) -> Path:
        return Path(f"{self.paths.drives}/")

    def system_program(self, name: str) -> Path:
        """By its whole path: the PATH of Windows need not be in ours."""
        return self.drives / _SYSTEM32 / name

    def windows_variables(self) -> dict[str, str]:
        """The environment of the Windows user, names in capital letters; empty if Windows does not answer."""
        answer = self._ask("cmd.exe", "/d", "/u", "/c", "set")
        pairs = (line.partition("=") for line in answer.splitlines())
        return {name.upper(): value for name, sign, value in pairs if sign and name}

    def distributions(self) -> Sequence[str]:
        """The installed ones by name; none if Windows does not answer."""
        return [name for line in self._ask("wsl.exe", "-l", "-q").splitlines() if (name := line.strip("\ufeff \0"))]

    def _ask(self, program: str, *args: str) -> str:
        try:
            answer = subprocess.run(
                [self.system_program(program), *args],
                cwd=self.drives / "c",  # cmd.exe warns about a directory of Linux
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_TIMEOUT_S,
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            return ""
        # Both write UTF-16 into pipes; with WSL_UTF8=1 the second does not.
        return answer.decode("utf-16-le" if b"\0" in answer else "utf-8", "replace")


def this_wsl() -> Wsl | None:
    """None outside WSL."""
    return Wsl(wsl_paths()) if platform.IN_WSL else None


def wsl_paths() -> WslPaths:
    """How this distribution spells paths of Windows. To be asked in WSL only."""
    return WslPaths(os.environ.get("WSL_DISTRO_NAME") or _own_name(), _drives())


def local_path(text: str) -> str:
    """A path or a `file:` address that a caller sends, as Linux spells it: in WSL the caller may run on Windows.

    Elsewhere it stays as it is. Raises `ToolError` for what is not in this distribution.
    """
    if not platform.IN_WSL or _OF_WINDOWS.match(text) is None:
        return text
    paths = wsl_paths()
    return (paths.linux_of_uri(text) if text[:5].lower() == "file:" else paths.linux(text)) or text


def is_too_wide(directory: Path) -> bool:
    """In WSL: whether it is a whole drive of Windows, a folder of its system, or a user's whole profile."""
    return platform.IN_WSL and wsl_paths().is_too_wide(directory.as_posix())


def _own_name() -> str:
    """`sudo` and services leave the variable out. Windows' name of our root ends with it."""
    try:
        root = subprocess.run(["wslpath", "-w", "/"], capture_output=True, text=True, timeout=_TIMEOUT_S).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return root.strip().rstrip("\\").rpartition("\\")[2]


def _drives() -> str:
    import configparser  # not on every start

    parser = configparser.ConfigParser(strict=False, interpolation=None, inline_comment_prefixes="#")
    try:
        parser.read_string(CONFIG_FILE.read_text("utf-8-sig"))
        root = parser.get("automount", "root", fallback="").strip().strip('"')
    except (OSError, ValueError, configparser.Error):
        root = ""
    return root.rstrip("/") if root.startswith("/") else "/mnt"
