"""A double of WSL: a folder stands for the mounted drives of Windows, shell scripts for its programs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from goat_mcp.core import platform
from goat_mcp.processes import wsl

DISTRIBUTION = "Ubuntu-24.04"


@dataclass(frozen=True)
class FakeWindows:
    """`drives` is what `/mnt` is by default. Interop is off until `answers` says otherwise."""

    drives: Path

    @property
    def profile(self) -> Path:
        return self.drives / "c" / "Users" / "Ada L"

    @property
    def roaming(self) -> Path:
        return self.profile / "AppData" / "Roaming"

    def answers(self, program: str, text: str) -> None:
        """What a program of the system prints, in UTF-16 and with Windows' line ends. Its arguments go to a file."""
        folder = self.drives / "c" / "Windows" / "System32"
        folder.mkdir(parents=True, exist_ok=True)
        answer = folder / f"{program}.out"
        answer.write_bytes(text.replace("\n", "\r\n").encode("utf-16-le"))
        script = folder / program
        script.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(folder / program))}.args\ncat {_quoted(answer)}\n')
        script.chmod(0o755)

    def has_user(self) -> None:
        """Interop works, and says who the user is."""
        self.roaming.mkdir(parents=True)
        self.answers(
            "cmd.exe",
            "ComSpec=C:\\Windows\\system32\\cmd.exe\nUSERPROFILE=C:\\Users\\Ada L\n"
            "APPDATA=C:\\Users\\Ada L\\AppData\\Roaming\n"
            "Path=C:\\Windows\\System32;C:\\Program Files\\nodejs\\\nPATHEXT=.COM;.EXE;.BAT;.CMD\n"
            "SystemRoot=C:\\Windows\n",
        )
        self.answers("wsl.exe", f"{DISTRIBUTION}\nDebian\n")


def put_into_wsl(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWindows:
    """From here on this process runs in WSL, with the drives of Windows below `folder`."""
    drives = folder / "win"
    (drives / "c" / "Users").mkdir(parents=True)
    config = folder / "wsl.conf"
    config.write_text(f"[boot]\nsystemd=true\n[automount]\nroot = {drives}/\n")
    monkeypatch.setattr(platform, "IN_WSL", True)
    monkeypatch.setattr(wsl, "CONFIG_FILE", config)
    monkeypatch.setenv("WSL_DISTRO_NAME", DISTRIBUTION)
    return FakeWindows(drives)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
