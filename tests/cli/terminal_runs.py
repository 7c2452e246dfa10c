"""`goat-mcp` as a person runs it: all three standard streams are one terminal of 80 columns."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.quick_start import goat_command

COLUMNS = 80
TIMEOUT_S = 20
_STYLES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def run_on_terminal(
    *words: str,
    cwd: Path,
    home: Path | None = None,
    typed: str = "",
    interrupt_at: str = "",
    variables: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Exit status, and what the terminal shows without its colours. `typed` waits in the terminal from the start.

    `interrupt_at`: Ctrl-C as soon as this is shown.
    """
    home = home or cwd
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    os.write(ours, typed.encode())
    process = subprocess.Popen(
        goat_command(*words),
        cwd=cwd,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "GOAT_MCP_STATE_DIR": str(home / "state"),
            "TERM": "xterm",
            **(variables or {}),
        },
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = bytearray()
    waiting = select.poll()  # `select` takes no descriptor above 1,023
    waiting.register(ours, select.POLLIN)
    until_s = time.monotonic() + TIMEOUT_S
    with suppress(OSError):  # EIO: nobody has the terminal any more
        while time.monotonic() < until_s:
            if waiting.poll(1000):
                shown += os.read(ours, 65536)
            if interrupt_at and interrupt_at.encode() in shown:
                process.send_signal(signal.SIGINT)  # again if it came just before the program read from the terminal
    os.close(ours)  # a program that still waits for its terminal is hung up
    return process.wait(TIMEOUT_S), _STYLES.sub("", shown.decode()).replace("\r\n", "\n")
