"""Our ends of one command's pipes: what it prints, where it stood at its end, and what its sandbox says of it.

What follows from any of it is `running_command`'s.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from goat_mcp.core import posix
from goat_mcp.processes.bash_invocation import reported_directory
from goat_mcp.processes.output_capture import SeparateStreams

_READ_BYTES = 256 * 1024
_READS_AT_ONCE = 4
_MAX_REPORT_BYTES = 64 * 1024
_MAX_STATUS_BYTES = 16


def _not_yet(data: bytes = b"") -> None:
    """Nobody listens before `listen`."""


class CommandPipes:
    """Reads what comes, as it comes. Only for the event loop that started the command.

    `output` is what it prints, `errors` the second half of that where `streams` keep the two apart. To `report` bash
    writes its last directory, and to `status` a sandbox that it is up, and how bash ended. What is -1 is not there.
    """

    def __init__(
        self, *, output: int, report: int, status: int = -1, errors: int = -1, streams: SeparateStreams | None = None
    ) -> None:
        self.activity = asyncio.Event()
        """Something has come, or has ended. Whoever waits for it clears it first."""
        self._loop = asyncio.get_running_loop()
        self._output, self._errors, self._report_end, self._status_end = output, errors, report, status
        self._streams = streams
        self._report = bytearray()
        self._status = bytearray()
        self._open: set[int] = set()
        self._printed: Callable[[bytes], None] = _not_yet
        self._bash_ended: Callable[[], None] = _not_yet

    def listen(self, printed: Callable[[bytes], None], bash_ended: Callable[[], None]) -> None:
        """Begin to read. `printed` gets what the command prints, `bash_ended` hears when a sandbox says so."""
        self._printed, self._bash_ended = printed, bash_ended
        for descriptor, read in (
            (self._output, self._read_output),
            (self._report_end, self._read_report),
            (self._errors, self._read_errors),
            (self._status_end, self._read_status),
        ):
            if descriptor >= 0:
                posix.set_blocking(descriptor, False)
                self.watch(descriptor, read)

    def watch(self, descriptor: int, read: Callable[[], None]) -> None:
        """Have one more descriptor watched, until it is closed here."""
        self._open.add(descriptor)
        self._loop.add_reader(descriptor, read)

    def close(self, descriptor: int) -> None:
        """Watch it no more. Does nothing to one that is closed."""
        if descriptor in self._open:
            self._open.remove(descriptor)
            self._loop.remove_reader(descriptor)
            os.close(descriptor)

    def close_all(self) -> None:
        for descriptor in tuple(self._open):
            self.close(descriptor)
        if self._streams is not None:
            self._streams.close()

    def read_what_is_there(self) -> None:
        """What was written before now."""
        self._read_output()
        self._read_errors()
        self._read_report()
        self._read_status()

    @property
    def number_open(self) -> int:
        return len(self._open)

    @property
    def may_print_more(self) -> bool:
        return not self._open.isdisjoint((self._output, self._errors))

    @property
    def has_reporters(self) -> bool:
        """Whether somebody still holds the report's other end: all that the command started inherits it."""
        return self._report_end in self._open

    @property
    def directory(self) -> str | None:
        """Where the script stood at its end; None if it did not say."""
        return reported_directory(bytes(self._report))

    @property
    def is_sandbox_up(self) -> bool:
        """Whether the sandbox has ever said that it stands."""
        return bool(self._status)

    @property
    def reported_exit_code(self) -> int | None:
        """What the sandbox says bash ended with."""
        reported = bytes(self._status[1:]).strip()
        return int(reported) if reported.isdigit() else None

    def _read_output(self) -> None:
        for _ in range(_READS_AT_ONCE):
            data = self._read(self._output)
            if not data:
                return
            if self._streams is not None:
                self._streams.stdout.add(data)
            self._printed(data)

    def _read_errors(self) -> None:
        for _ in range(_READS_AT_ONCE):
            data = self._read(self._errors)
            if not data or self._streams is None:
                return
            self._streams.stderr.add(data)
            self._printed(data)

    def _read_report(self) -> None:
        while data := self._read(self._report_end):
            if len(self._report) < _MAX_REPORT_BYTES:
                self._report += data

    def _read_status(self) -> None:
        while data := self._read(self._status_end):
            self._status += data[:_MAX_STATUS_BYTES]
        if len(self._status) > 1:
            self._read_output()
            self._read_errors()
            self._read_report()
            self._bash_ended()

    def _read(self, descriptor: int) -> bytes:
        """What a pipe holds now; empty when it holds nothing, or has ended and is therefore closed."""
        if descriptor not in self._open:
            return b""
        try:
            data = os.read(descriptor, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return b""
        self.activity.set()
        if not data:
            self.close(descriptor)
        return data
