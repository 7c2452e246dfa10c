"""Temporary files beside the file being written, and the removal of those whose writer was killed.

A writer holds an advisory lock on its temporary file for as long as it lives, so that "abandoned" needs
no guess about process ids. A note in the private folder says where each one lies, for the next start.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.core import platform, posix
from goat_mcp.files.workspace.directory import Directory
from goat_mcp.files.workspace.locks import open_private
from goat_mcp.state.file_lock import try_lock

PREFIX = ".goat-mcp-"
SUFFIX = ".tmp"
_NAME = re.compile(r"\.goat-mcp-[0-9]+-[0-9a-f]{16}\.tmp")
GRACE_S = 10.0
"""A writer locks its file right after creating it; this long an unlocked one may still be its."""
_ATTEMPTS = 8


@dataclass(frozen=True)
class TempFile:
    """An empty file of this process, 0600, open for writing."""

    fd: int
    directory: Directory
    name: str

    def write(self, data: bytes) -> None:
        write_all(self.fd, data)


class TempFiles:
    """Makes temporary files and clears up after processes that could not."""

    def __init__(self, folder: Path) -> None:
        self._notes = folder

    @contextmanager
    def create(self, directory: Directory, parent: Path) -> Generator[TempFile]:
        """A temporary file in a directory. Gone afterwards, unless it was renamed."""
        name = f"{PREFIX}{os.getpid()}-{os.urandom(8).hex()}{SUFFIX}"
        with self._noted(parent / name):
            temp = TempFile(_create(directory, name), directory, name)
            try:
                yield temp
            finally:
                with suppress(FileNotFoundError):
                    directory.remove(name)
                os.close(temp.fd)

    def remove_abandoned(self, directory: Directory) -> None:
        """Remove what killed writers left in one directory, if it may be listed."""
        with suppress(OSError):
            for name in [entry.name for entry in directory.entries() if is_temp_name(entry.name)]:
                remove_if_abandoned(directory, name)

    def noted(self) -> Iterator[Path]:
        """Temporary files that writers noted and may have left; their notes go with the asking."""
        try:
            notes = list(os.scandir(self._notes))
        except OSError:
            return
        for note in notes:
            if not note.name.endswith(".note"):
                continue
            with suppress(OSError):
                old = time.time() - note.stat(follow_symlinks=False).st_mtime > GRACE_S
                if old or not _is_alive(_process_of(note.name)):
                    path = Path(os.fsdecode(Path(note.path).read_bytes()))
                    if is_temp_name(path.name):
                        yield path
                    if not path.exists():
                        Path(note.path).unlink()

    @contextmanager
    def _noted(self, path: Path) -> Generator[None]:
        """Keep a note of `path`. If none can be kept, the next write beside it still clears up."""
        note = self._notes / f"{path.name.removeprefix(PREFIX).removesuffix(SUFFIX)}.note"
        with suppress(OSError):
            fd = open_private(note)
            try:
                os.write(fd, os.fsencode(path))
            finally:
                os.close(fd)
        try:
            yield
        finally:
            with suppress(OSError):
                note.unlink()


def _create(directory: Directory, name: str) -> int:
    for _ in range(_ATTEMPTS):
        fd = directory.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            is_mine = try_lock(fd)
        except OSError:
            is_mine = True  # a file system without locks: the age of the file protects it
        if is_mine and os.fstat(fd).st_nlink > 0:
            return fd
        os.close(fd)  # taken for abandoned before it was locked
    raise OSError(errno.EAGAIN, "no temporary file could be kept")


def is_temp_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def remove_if_abandoned(directory: Directory, name: str) -> None:
    """Remove a temporary file that no living process holds."""
    with suppress(OSError):
        fd = directory.open(name, os.O_RDONLY | posix.O_NONBLOCK)
        try:
            is_new = time.time() - os.fstat(fd).st_mtime < GRACE_S
            if is_new and _is_alive(_process_of(name.removeprefix(PREFIX))):
                return
            if try_lock(fd):
                directory.remove(name)
        finally:
            os.close(fd)


def _process_of(name: str) -> int:
    head = name.partition("-")[0]
    return int(head) if head.isdecimal() else 0


def _is_alive(process: int) -> bool:
    if process <= 0:
        return False
    if not platform.HAS_PROCESS_GROUPS:  # there `kill` ends a process, whatever the number
        import psutil  # 20 ms, and only if something was left

        return psutil.pid_exists(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
