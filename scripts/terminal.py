"""Run a command on a terminal of its own, answer what it asks, and get what a person sees at the end."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyte  # pyright: ignore[reportMissingTypeStubs]

COLUMNS = 80
LINES = 500
"""More than a command prints: nothing scrolls away."""


@dataclass(frozen=True)
class Shown:
    text: str
    exit_code: int
    seconds: float


def run_on_terminal(
    command: str,
    environment: Mapping[str, str],
    folder: Path,
    answers: Sequence[tuple[str, str]] = (),
    timeout_s: float = 120,
) -> Shown:
    """What a shell command leaves on a terminal of 80 columns, as text.

    `answers` are typed in order, each once the terminal shows the text that it follows. What is typed is shown too.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    started = time.monotonic()
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        env={**environment, "TERM": "xterm-256color"},
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    waiting = list(answers)
    try:
        while part := _read(ours, started + timeout_s):
            stream.feed(part)
            if waiting and waiting[0][0] in _text(screen):
                os.write(ours, f"{waiting.pop(0)[1]}\n".encode())
        code = process.wait(10)
    finally:
        process.kill()
        os.close(ours)
    if waiting:
        raise RuntimeError(f"{command}: never asked {waiting[0][0]!r}:\n{_text(screen)}")
    return Shown(_text(screen), code, time.monotonic() - started)


def _read(ours: int, deadline: float) -> bytes:
    """The next output; nothing if all who have the terminal are gone."""
    ready, _, _ = select.select([ours], [], [], max(deadline - time.monotonic(), 0))
    if not ready:
        raise TimeoutError("the command goes on")
    try:
        return os.read(ours, 65536)
    except OSError:  # EIO: nobody has the terminal any more
        return b""


def _text(screen: pyte.Screen) -> str:
    return "\n".join(line.rstrip() for line in screen.display).rstrip()
