"""Replacing a file's content in one step: all of the new bytes or all of the old ones, whatever happens.

Contract: R-FILE-7 and tools.md, "Writing". Finding the place is `beneath`'s; whether a client may write
is not asked here. A foreign program that writes between the last check and the rename loses its bytes:
nothing can prevent that.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from goat_mcp.core import platform, posix
from goat_mcp.files.workspace import refusals
from goat_mcp.files.workspace.attributes import give_attributes, give_new_mode
from goat_mcp.files.workspace.beneath import Location
from goat_mcp.files.workspace.directory import Directory
from goat_mcp.files.workspace.opened_file import AnyVersion, FileIdentity, FileVersion, hash_of
from goat_mcp.files.workspace.temp_files import TempFile, TempFiles, write_all

_NO_REPLACING = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""The folder takes no new files; the file itself may still be writable."""
_HASH_IN_THREAD_BYTES = 4 * 1024 * 1024

Expected = FileVersion | AnyVersion | None


class BeforeChange(Protocol):
    """Called before a change that is ready, so that it can keep the old bytes. What it raises stops the change.

    `old` is the file that is about to go, None if there is none; `sha256` is of the new content, empty if the
    file will be removed. `in_place` says that the old file will be overwritten instead of replaced: a link to it
    keeps nothing. It may be called twice, the second time with `in_place`.
    """

    def __call__(
        self, location: Location, old: os.stat_result | None, sha256: str, *, in_place: bool = False
    ) -> None: ...


def do_nothing(location: Location, old: os.stat_result | None, sha256: str, *, in_place: bool = False) -> None:
    """A `BeforeChange` that does nothing."""


@dataclass(frozen=True)
class WrittenFile:
    """What is there now."""

    real_path: Path
    version: FileVersion
    created: bool


@dataclass(frozen=True)
class FileWriter:
    """Writes at a place that is already pinned. `asked` is the path in the caller's words, for errors."""

    temps: TempFiles

    def write(
        self,
        location: Location,
        data: bytes,
        expect: Expected,
        asked: object,
        *,
        before: BeforeChange = do_nothing,
        new_mode: int | None = None,
    ) -> WrittenFile:
        """`new_mode` is that of a file that is created; otherwise it follows the umask."""
        self.check(location, asked)
        if location.stat is None:
            return self._create(location, data, expect, asked, before, new_mode)
        return self._replace(location, data, expect, asked, before)

    def check(self, location: Location, asked: object) -> None:
        """Raises `ToolError` for what is never written: DIRECTORY, NOT_REGULAR, HARD_LINKED, a dangling link."""
        self.temps.remove_abandoned(location.directory)  # first: one of them may be a hard link of the file
        if location.stat is None:
            if location.dangling:
                raise refusals.dangling_link(asked)
            return
        original = location.directory.stat(location.name)
        if stat.S_ISDIR(original.st_mode):
            raise refusals.is_directory(asked)
        if not stat.S_ISREG(original.st_mode):
            raise refusals.not_regular(asked)
        if original.st_nlink > 1:
            raise refusals.hard_linked(asked, original.st_nlink)

    def remove(
        self, location: Location, expect: FileVersion, asked: object, *, before: BeforeChange = do_nothing
    ) -> None:
        """Take the file away, if it still holds what is expected."""
        self.check(location, asked)
        original = OriginalFile(location, asked)
        original.check(expect)
        before(location, original.stat(), "")
        location.directory.remove(location.name)
        sync_directory(location.directory)

    def _create(
        self,
        location: Location,
        data: bytes,
        expect: Expected,
        asked: object,
        before: BeforeChange,
        new_mode: int | None,
    ) -> WrittenFile:
        if isinstance(expect, FileVersion):
            raise refusals.stale(asked, "was deleted since it was read")
        *folders, name = location.missing
        directory, made = make_folders(location.directory, folders)
        try:
            with (
                self.temps.create(directory, location.parent.joinpath(*folders)) as temp,
                _Hashing(data) as hashing,
            ):
                temp.write(data)
                give_new_mode(temp.fd, new_mode)
                os.fsync(temp.fd)
                before(location, None, hashing.hexdigest())
                if isinstance(expect, AnyVersion):
                    directory.rename(temp.name, directory, name)
                else:
                    _rename_new(temp, name, asked)
                sync_directory(directory)
                version = _version(os.fstat(temp.fd), hashing.hexdigest())
        except BaseException:
            remove_folders(location.directory, made)
            raise
        finally:
            directory.close()
        return WrittenFile(location.real, version, created=True)

    def _replace(
        self, location: Location, data: bytes, expect: Expected, asked: object, before: BeforeChange
    ) -> WrittenFile:
        if expect is None:
            raise refusals.stale(asked, "exists already")
        original = OriginalFile(location, asked)
        original.check(expect)
        try:
            with self.temps.create(location.directory, location.parent) as temp, _Hashing(data) as hashing:
                temp.write(data)
                give_attributes(location.directory, location.name, temp.fd)
                os.fsync(temp.fd)
                original.check(expect)
                before(location, original.stat(), hashing.hexdigest())
                location.directory.rename(temp.name, location.directory, location.name)
                sync_directory(location.directory)
                return WrittenFile(location.real, _version(os.fstat(temp.fd), hashing.hexdigest()), created=False)
        except OSError as problem:
            # EBUSY: the file is a mount of its own
            if problem.errno not in _NO_REPLACING and problem.errno != errno.EBUSY:
                raise
        original.check(expect)
        digest = hashlib.sha256(data).hexdigest()
        before(location, original.stat(), digest, in_place=True)
        now = write_in_place(location, data)
        return WrittenFile(location.real, _version(now, digest), created=False)


class _Hashing:
    """The SHA-256 of what is being written; of much data in a thread, while the disk is at work."""

    def __init__(self, data: bytes) -> None:
        self._digest = hashlib.sha256()
        self._data = data
        self._thread: threading.Thread | None = None

    def __enter__(self) -> _Hashing:
        if len(self._data) >= _HASH_IN_THREAD_BYTES:
            self._thread = threading.Thread(target=self._digest.update, args=(self._data,), daemon=True)
            self._thread.start()
        else:
            self._digest.update(self._data)
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._thread.join()

    def hexdigest(self) -> str:
        if self._thread is not None:
            self._thread.join()
        return self._digest.hexdigest()


def _version(now: os.stat_result, digest: str) -> FileVersion:
    return FileVersion(digest, now.st_size, now.st_mtime_ns, FileIdentity.settled(now, time.time_ns()))


def _rename_new(temp: TempFile, name: str, asked: object) -> None:
    """Give the finished file its name unless the name has been taken: a link fails where a rename would replace."""
    try:
        temp.directory.link(temp.name, temp.directory, name)
    except FileExistsError:
        raise refusals.stale(asked, "exists already") from None
    except OSError as problem:
        if problem.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
            raise
        # a file system without links: look first
        with suppress(FileNotFoundError):
            temp.directory.stat(name)
            raise refusals.stale(asked, "exists already") from None
        temp.directory.rename(temp.name, temp.directory, name)
    else:
        temp.directory.remove(temp.name)


FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_in_place(location: Location, data: bytes) -> os.stat_result:
    """Overwrite, for files that cannot be replaced. The old bytes come back if the new ones do not fit.

    Returns what is there afterwards. A process killed meanwhile leaves a mixture: there is no second file
    to fall back on.
    """
    fd = location.directory.open(location.name, os.O_RDWR | posix.O_NONBLOCK)
    try:
        before = os.fstat(fd)
        _reserve(fd, len(data), before)
        with open(fd, "rb", buffering=0, closefd=False) as file:
            old = file.readall()
        try:
            _overwrite(fd, data)
        except BaseException:
            _overwrite(fd, old)
            _restore_times(fd, before)
            raise
        return os.fstat(fd)
    finally:
        os.close(fd)


def _overwrite(fd: int, data: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    write_all(fd, data)
    os.ftruncate(fd, len(data))
    os.fsync(fd)


def _reserve(fd: int, size: int, before: os.stat_result) -> None:
    """Find out that the disk is full before the first old byte is gone."""
    if size <= before.st_size:
        return
    try:
        posix.posix_fallocate(fd, 0, size)
    except OSError as problem:
        if problem.errno in FULL:
            os.ftruncate(fd, before.st_size)
            _restore_times(fd, before)
            raise


def _restore_times(fd: int, before: os.stat_result) -> None:
    if not platform.HAS_FILE_MODES:
        return  # it has no call for an open file
    with suppress(PermissionError):  # only the owner may
        os.utime(fd, ns=(before.st_atime_ns, before.st_mtime_ns))


NEW_FOLDER_MODE = 0o777


def make_folders(top: Directory, names: list[str]) -> tuple[Directory, list[tuple[str, ...]]]:
    """Create missing folders below an open one. Returns the last one and those this call made."""
    directory = top.duplicate()
    made: list[tuple[str, ...]] = []
    try:
        for depth, name in enumerate(names, start=1):
            with suppress(FileExistsError):
                directory.make(name, NEW_FOLDER_MODE)
                made.append(tuple(names[:depth]))
                sync_directory(directory)
            below = directory.enter(name)
            directory.close()
            directory = below
    except BaseException:
        directory.close()
        remove_folders(top, made)
        raise
    return directory, made


def remove_folders(top: Directory, made: list[tuple[str, ...]]) -> None:
    """Take back folders that were made for a file that did not come; none that has got another use."""
    for names in reversed(made):
        with suppress(OSError), ExitStack() as opened:
            directory = top
            for name in names[:-1]:
                directory = opened.enter_context(directory.enter(name))
            directory.remove_folder(names[-1])


def sync_directory(directory: Directory) -> None:
    with suppress(OSError):  # may not be listed, or its file system has no such thing
        directory.sync()


_READ_FLAGS = os.O_RDONLY | posix.O_NONBLOCK


class OriginalFile:
    """As it is found at a place. `asked` is the path in the caller's words, for errors."""

    def __init__(self, location: Location, asked: object) -> None:
        self._location = location
        self._asked = asked
        self._accepted: FileIdentity | None = None

    def check(self, expect: FileVersion | AnyVersion) -> None:
        """Raises `ToolError(STALE)` unless the content is the expected one."""
        if isinstance(expect, AnyVersion):
            return
        try:
            found = self.stat()
        except FileNotFoundError:
            raise refusals.stale(self._asked, "was deleted since it was read") from None
        identity = FileIdentity.of(found)
        if identity in (expect.identity, self._accepted):
            return
        if not stat.S_ISREG(found.st_mode) or found.st_size != expect.size:
            raise refusals.stale(self._asked, "changed since it was read")
        fd = self._location.directory.open(self._location.name, _READ_FLAGS)
        try:
            before, read_from_ns = os.fstat(fd), time.time_ns()
            if hash_of(fd) != expect.sha256:
                raise refusals.stale(self._asked, "changed since it was read")
            if FileIdentity.of(before) == FileIdentity.of(os.fstat(fd)):
                self._accepted = FileIdentity.settled(before, read_from_ns)
        finally:
            os.close(fd)

    def stat(self) -> os.stat_result:
        return self._location.directory.stat(self._location.name)
