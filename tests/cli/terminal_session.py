"""A command on a real terminal (a pty) of a given size: what it shows, keys for it, and how it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import selectors
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

CTRL_C = b"\x03"
_SEQUENCES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])")


def plain(text: str) -> str:
    """What a terminal shows of `text`, without colours; a line that is written again counts as it was last."""
    lines = _SEQUENCES.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rpartition("\r")[2] if line.rpartition("\r")[2] else line.strip("\r") for line in lines)


class TerminalSession:
    """Runs `command` with a terminal as its standard streams (`stdout`: a file in place of the terminal)."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        variables: Mapping[str, str],
        columns: int = 80,
        rows: int = 24,
        stdout: int | None = None,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env={"PATH": os.environ["PATH"], "TERM": "xterm-256color", **variables},
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_own_the_terminal,
        )
        os.close(slave)
        self._seen = b""

    def __enter__(self) -> TerminalSession:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    @property
    def raw(self) -> str:
        """What the command wrote, with its control sequences."""
        return self._seen.decode("utf-8", "replace")

    @property
    def shown(self) -> str:
        return plain(self.raw)

    @property
    def output(self) -> bytes:
        """All that was sent to the terminal, as it came."""
        return self._seen

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def interrupt(self) -> None:
        """What Ctrl-C does to a process whose launcher has the terminal, too."""
        self.process.send_signal(signal.SIGINT)

    def wait_for(self, text: str, timeout_s: float = 30.0) -> None:
        """Read until `text` is shown."""
        deadline_s = time.monotonic() + timeout_s
        while text not in self.shown:
            if not self._read(deadline_s - time.monotonic()):
                raise AssertionError(f"{text!r} was not shown, but:\n{self.shown}")

    def wait_for_question(self, text: str) -> None:
        """Read until `text` is shown and the command sleeps in its read: CPython loses a signal that comes between."""
        self.wait_for(text)
        process = psutil.Process(self.process.pid)
        self.wait_until(lambda: process.status() == psutil.STATUS_SLEEPING, "it does not read")

    def wait_until(self, happens: Callable[[], bool], otherwise: str, timeout_s: float = 30.0) -> None:
        """Read until `happens`."""
        deadline_s = time.monotonic() + timeout_s
        while not happens():
            self._read(0.05)
            assert time.monotonic() < deadline_s and self.process.poll() is None, f"{otherwise}:\n{self.shown}"

    def end(self, timeout_s: float = 30.0) -> int:
        """Read until the command ends. The exit code; raises `TimeoutError`."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            has_ended = self.process.poll() is not None  # before the read: what it wrote last is read, too
            if not self._read(min(0.1, deadline_s - time.monotonic())) and has_ended:
                return self.process.returncode
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"still running after {timeout_s} s:\n{self.shown}")

    def seconds_to_end(self, limit_s: float = 30.0) -> float:
        started_s = time.monotonic()
        self.end(limit_s)
        return time.monotonic() - started_s

    def _read(self, timeout_s: float) -> bool:
        """Whether something came within that time."""
        with selectors.DefaultSelector() as waiting:  # `select` takes no descriptor above 1,023
            waiting.register(self._master, selectors.EVENT_READ)
            if not waiting.select(max(0.0, timeout_s)):
                return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux says EIO if nobody has the other end open
            return False
        self._seen += data
        return bool(data)


def _own_the_terminal() -> None:
    if sys.platform != "win32":
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
