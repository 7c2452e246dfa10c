"""Mailboxes on disk: a letter is sent once it is stored, and read once. Addressing is the team's business."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from goat_mcp.state.file_lock import exclusive
from goat_mcp.state.own_file import open_own
from goat_mcp.state.private_file import write_private

MAX_UNREAD_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Letter:
    """One message. `kind` is message, broadcast, shutdown_request, shutdown_response or idle."""

    sender: str
    kind: str
    text: str
    summary: str = ""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    sent_at_s: float = field(default_factory=time.time)


@dataclass(frozen=True)
class Mailbox:
    """One file of letters, a line each, and a cursor behind the last one read. Both survive a crash of the process."""

    folder: Path
    owner: str

    def post(self, letter: Letter) -> None:
        """Store a letter. It is on disk when this returns; raises `OSError` where it could not be stored."""
        line = json.dumps(asdict(letter)).encode() + b"\n"
        with self._locked():
            descriptor = open_own(self._letters, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            size = os.fstat(descriptor).st_size
            try:
                if size - self._cursor() + len(line) > MAX_UNREAD_BYTES:
                    raise OSError(28, "the mailbox is full", str(self._letters))
                # What a crash tore off must not take this letter with it.
                torn = size > 0 and _last_byte(descriptor, size) != b"\n"
                _write_all(descriptor, b"\n" + line if torn else line)
                os.fsync(descriptor)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
            finally:
                os.close(descriptor)

    def take(self) -> list[Letter]:
        """The letters that were not read yet, oldest first; from now on they are. Broken lines are set aside."""
        if not self._letters.exists():
            return []
        with self._locked():
            start = self._cursor()
            with self._letters.open("rb") as file:
                file.seek(start)
                unread = file.read()
            whole = unread[: unread.rfind(b"\n") + 1]
            letters: list[Letter] = []
            for line in whole.splitlines():
                letter = _parsed(line)
                if letter is not None:
                    letters.append(letter)
                elif line.strip():
                    self._set_aside(line)
            self._move_cursor(start + len(whole))
        return letters

    def has_unread(self) -> bool:
        try:
            return self._letters.stat().st_size > self._cursor()
        except OSError:
            return False

    @property
    def _letters(self) -> Path:
        return self.folder / f"{self.owner}.jsonl"

    def _cursor(self) -> int:
        try:
            return max(0, int((self.folder / f"{self.owner}.read").read_text()))
        except (OSError, ValueError):
            return 0

    def _move_cursor(self, position: int) -> None:
        write_private(self.folder / f"{self.owner}.read", str(position).encode())

    def _set_aside(self, line: bytes) -> None:
        with contextlib.suppress(OSError), (self.folder / f"{self.owner}.broken").open("ab") as file:
            file.write(line + b"\n")

    def _locked(self) -> AbstractContextManager[None]:
        """One reader or writer at a time, among threads and processes."""
        return exclusive(self.folder / f"{self.owner}.lock")


def _last_byte(descriptor: int, size: int) -> bytes:
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _parsed(line: bytes) -> Letter | None:
    try:
        fields: dict[str, Any] = json.loads(line)
        letter = Letter(**fields)
    except (ValueError, TypeError):
        return None
    texts: tuple[Any, ...] = (letter.sender, letter.kind, letter.text, letter.summary, letter.id)
    return letter if all(isinstance(text, str) for text in texts) else None
