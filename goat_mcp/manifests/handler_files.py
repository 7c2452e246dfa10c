"""The files that a call of a declared tool runs, and whether they are still those that the call was judged with.

These are the files that its entry names. What they import or start is only covered in a sealed copy.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from goat_mcp.manifests.entry import CommandEntry, Entry, HandlersEntry

MAX_HASHED_BYTES = 16 * 1024 * 1024
"""An argument may name a file of any size; a longer one is identified by its state only."""
_GONE = "-"
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True)
class HandlerFiles:
    """The files of one resource. `sealed_as` returns the name (a content hash) of the copy they are in, or nothing."""

    entry: Entry
    folder: Path
    sealed_as: Callable[[], str]

    def state(self, export: str) -> str:
        """Identifies the files of an export until they change or are replaced. Taken twice in each call, so no file is
        read. Only valid in this process."""
        return " ".join(_state(path.replace("{export}", export)) for path in self._named)

    def content(self, export: str) -> str:
        """Identifies the content of the files, also for other processes."""
        return self.sealed_as() or " ".join(_content(path.replace("{export}", export)) for path in self._named)

    @cached_property
    def _named(self) -> tuple[str, ...]:
        if isinstance(self.entry, HandlersEntry) and self.entry.file is not None:
            return (str(self.entry.file),)
        if isinstance(self.entry, CommandEntry):
            # A program by its name alone is found on PATH; of its arguments any may be a script beside the manifest.
            return tuple(os.path.join(self.folder, one) for one in self.entry.arguments if one)  # noqa: PTH118  # a `Path` costs more than the look
        return ()


def _state(path: str) -> str:
    try:
        found = os.stat(path)  # noqa: PTH116  # a `Path` costs more than the look
    except (OSError, ValueError):
        return _GONE
    return _state_of(found) if stat.S_ISREG(found.st_mode) else _GONE


def _state_of(found: os.stat_result) -> str:
    # The time of the last change of any kind: that of the contents can be set at will.
    return f"{found.st_dev}.{found.st_ino}.{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}"


def _content(path: str) -> str:
    try:
        with os.fdopen(os.open(path, _READ_FLAGS), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return _GONE
            return (
                hashlib.file_digest(file, "sha256").hexdigest()
                if found.st_size <= MAX_HASHED_BYTES
                else _state_of(found)
            )
    except (OSError, ValueError):
        return _GONE
