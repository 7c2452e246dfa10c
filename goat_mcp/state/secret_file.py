"""Files that hold a secret: only read where nobody else could have read, written or replaced them (R-CONF-2)."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from goat_mcp.state.file_safety import why_folder_unsafe, why_not_ours, why_readable

MAX_BYTES = 64 * 1024


class UnsafeFile(Exception):
    """A secret's file that cannot be used. The text goes on after the file's name: `can be read by others (...)`."""


def read_secret_file(path: Path, *, max_bytes: int = MAX_BYTES) -> str:
    """The text of a regular file of ours, 0600, no link, in a folder that only we can write.

    What was checked is what is read. Raises `UnsafeFile`, and `FileNotFoundError` where there is none.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW if os.name == "posix" else os.O_RDONLY
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as problem:
        is_link = problem.errno in (errno.ELOOP, errno.EMLINK)
        raise UnsafeFile("is a symbolic link" if is_link else f"cannot be opened: {problem.strerror}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeFile("is not a regular file")
        if reason := why_not_ours(found) or why_readable(found) or _why_folder(path):
            raise UnsafeFile(reason)
        with os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(max_bytes + 1)
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        raise UnsafeFile(f"is longer than {max_bytes} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UnsafeFile("is not UTF-8 text") from None


def create_secret_file(path: Path, text: str) -> None:
    """Make a new file of ours, 0600; its folder is made 0700 where there is none.

    Raises `UnsafeFile`, and `FileExistsError`.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if reason := _why_folder(path):
            raise UnsafeFile(reason)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise
    except OSError as problem:
        raise UnsafeFile(f"cannot be made: {problem.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _why_folder(path: Path) -> str:
    try:
        return why_folder_unsafe(path.parent)
    except OSError as problem:
        return f"is in a folder that cannot be looked at: {problem.strerror}"
