"""Old contents by their SHA-256, in one private folder.

A small content is copied. For a large one a second name of the old file is enough: our writes replace files, so that
the old one stays as it was. Only if that cannot be done (another file system, a file that is overwritten), it is
copied too.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from goat_mcp.core import posix
from goat_mcp.files.workspace.beneath import Location
from goat_mcp.files.workspace.directory import open_directory
from goat_mcp.state.private_file import TEMP_PREFIX, write_private

LINKED_ABOVE_BYTES = 1024 * 1024
_COPY_CHUNK_BYTES = 8 * 1024 * 1024
_UNDER_WAY_S = 3600.0
"""Younger blobs may belong to a change that is not recorded yet."""
_READ_FLAGS = os.O_RDONLY | posix.O_NONBLOCK


def _new(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


class WrongContent(Exception):
    """A file does not hold what it should."""


class Blobs:
    """Contents kept in `folder`, 0600."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, sha256: str) -> Path:
        return self._folder / sha256

    def put(self, sha256: str, data: bytes) -> None:
        """Keep `data`. Raises `OSError`."""
        path = self.path(sha256)
        if self._has(path, data):
            os.utime(path)  # young again: it must not be pruned before it is recorded
        else:
            write_private(path, data)

    def keep(self, location: Location, old: os.stat_result, sha256: str, *, in_place: bool) -> None:
        """Keep the content of the file at `location`, which is about to go. Raises `OSError` or `WrongContent`."""
        if old.st_size <= LINKED_ABOVE_BYTES:
            self.put(sha256, _content(location, sha256))
        elif in_place or not self._linked(location, old, sha256):
            self._copied(location, sha256)

    def read(self, sha256: str) -> bytes:
        """Raises `FileNotFoundError` if it is not kept, `WrongContent` if it is damaged."""
        data = self.path(sha256).read_bytes()
        if hashlib.sha256(data).hexdigest() != sha256:
            raise WrongContent(str(self.path(sha256)))
        return data

    def finalize(self, sha256: str) -> None:
        """After the old file lost its name: make what was linked ours alone."""
        path = self.path(sha256)
        with suppress(OSError):
            found = path.stat()
            if found.st_nlink == 1 and stat.S_IMODE(found.st_mode) != 0o600:
                path.chmod(0o600)

    def release(self, file: os.stat_result) -> None:
        """If a change failed, its file may have a second name here: make that a file of its own.

        A file with several names would not be written any more (R-FILE-7).
        """
        if file.st_nlink < 2:
            return
        for path in self._entries():
            with suppress(OSError):
                if os.path.samestat(path.lstat(), file):
                    self._detach(path)

    def prune(self, kept: Collection[str]) -> None:
        """Remove all that is not in `kept` and not so young that a change under way may need it."""
        for path in self._entries():
            with suppress(OSError):
                found = path.lstat()
                if time.time() - max(found.st_ctime, found.st_mtime) < _UNDER_WAY_S:
                    continue
                if path.name not in kept:
                    path.unlink()
                elif found.st_nlink > 1:
                    self._detach(path)

    def _has(self, path: Path, data: bytes) -> bool:
        try:
            found = path.lstat()
            return (
                stat.S_ISREG(found.st_mode)
                and found.st_nlink == 1
                and found.st_size == len(data)
                and path.read_bytes() == data
            )
        except OSError:
            return False

    def _linked(self, location: Location, old: os.stat_result, sha256: str) -> bool:
        temp = self._temp(sha256)
        try:
            with open_directory(self._folder.resolve()) as folder:
                location.directory.link(location.name, folder, temp.name)
        except OSError:
            return False
        try:
            found = temp.lstat()
            if not os.path.samestat(found, old) or found.st_size != old.st_size:
                raise WrongContent(str(location.real))
            temp.replace(self.path(sha256))
        finally:
            # Still there if both were names of one file already: renaming one to the other does nothing.
            with suppress(FileNotFoundError):
                temp.unlink()
        return True

    def _copied(self, location: Location, sha256: str) -> None:
        self._copy(location.directory.open(location.name, _READ_FLAGS), self.path(sha256), sha256)

    def _detach(self, path: Path) -> None:
        """Replace a second name by a copy, or drop it if there is no room for one: the user's file comes first."""
        try:
            if path.name.startswith(TEMP_PREFIX):
                raise OSError
            self._copy(os.open(path, _READ_FLAGS | posix.O_NOFOLLOW), path, path.name)
        except (OSError, WrongContent):
            path.unlink()

    def _copy(self, source: int, path: Path, sha256: str) -> None:
        """Closes `source`, and before the copy takes its place: Windows replaces no file that is open."""
        temp = self._temp(sha256)
        digest = hashlib.sha256()
        try:
            with os.fdopen(source, "rb", buffering=0) as old, os.fdopen(_new(temp), "wb") as file:
                while chunk := old.read(_COPY_CHUNK_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            if digest.hexdigest() != sha256:
                raise WrongContent(str(path))
            temp.replace(path)
        except BaseException:
            with suppress(OSError):
                temp.unlink()
            raise

    def _temp(self, sha256: str) -> Path:
        return self._folder / f"{TEMP_PREFIX}{sha256}.{secrets.token_hex(4)}"

    def _entries(self) -> list[Path]:
        try:
            return [Path(entry.path) for entry in os.scandir(self._folder)]
        except FileNotFoundError:
            return []


def _content(location: Location, sha256: str) -> bytes:
    fd = location.directory.open(location.name, _READ_FLAGS)
    with os.fdopen(fd, "rb", buffering=0) as file:
        data = file.read(LINKED_ABOVE_BYTES + 1)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise WrongContent(str(location.real))
    return data
