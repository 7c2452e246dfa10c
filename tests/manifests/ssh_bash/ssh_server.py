"""A real OpenSSH server on loopback, for one test run: an ordinary child with keys and settings of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.free_port import free_port

SSHD = Path("/usr/sbin/sshd")
_SETTINGS = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowAgentForwarding yes
AllowTcpForwarding yes
X11Forwarding yes
"""
_START_S = 60.0
_ATTEMPTS = 5


@dataclass(frozen=True)
class SshServer:
    folder: Path
    port: int

    def host(self, **more: Any) -> Mapping[str, Any]:
        """What the settings say of it."""
        return {
            "address": "127.0.0.1",
            "port": self.port,
            "user": getpass.getuser(),
            "identity_file": str(self.folder / "user_key"),
            "known_hosts": str(self.folder / "known hosts"),
            **more,
        }

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


def why_not() -> str:
    """Why there can be no server here; empty where there can."""
    if not SSHD.exists() or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        return "no OpenSSH server here: `make openssh` installs it"
    if os.getuid() == 0 and not Path("/run/sshd").is_dir():
        return "sshd of root wants /run/sshd: `make openssh` makes it"
    return ""


@contextmanager
def ssh_server(folder: Path) -> Generator[SshServer]:
    """Skips the test where there can be none."""
    if reason := why_not():
        pytest.skip(reason)
    folder.mkdir()
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    for _ in range(_ATTEMPTS):
        server = SshServer(folder, free_port())
        (folder / "settings").write_text(_SETTINGS.format(port=server.port, folder=folder))
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", folder / "settings"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            if not _listens(server, process):
                continue  # somebody else was quicker to take the port
            key = (folder / "host_key.pub").read_text().split()[:2]
            (folder / "known hosts").write_text(f"[127.0.0.1]:{server.port} {' '.join(key)}\n")
            yield server
            return
        finally:
            process.terminate()
            process.wait(10)
    raise AssertionError(f"sshd does not start: {(folder / 'log').read_text()}")


def _listens(server: SshServer, process: subprocess.Popen[bytes]) -> bool:
    """Waits until it does, or has ended."""
    deadline_s = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        if "Server listening" in server.log:
            return True
        time.sleep(0.02)
    return False
