"""Runs a command with its standard output on a terminal of 80 columns, and returns what people see there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping
from pathlib import Path

from tests.quick_start import goat_command

COLUMNS = 80
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def run_on_terminal(*words: str, cwd: Path, variables: Mapping[str, str] | None = None) -> list[str]:
    """The lines, without colours and spaces at their ends."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(cwd),
        "TERM": "xterm",
        "GOAT_MCP_STATE_DIR": str(cwd / "state"),
        **(variables or {}),
    }
    read = bytearray()

    def drain() -> None:
        try:
            while data := os.read(ours, 65536):
                read.extend(data)
        except OSError:  # Linux reports the end of a terminal so
            return

    reader = threading.Thread(target=drain)
    reader.start()
    try:
        subprocess.run(
            goat_command(*words),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
    finally:
        os.close(theirs)
        reader.join(10)
        os.close(ours)
    return [line.rstrip() for line in _ESCAPES.sub("", read.decode()).replace("\r", "").splitlines()]
