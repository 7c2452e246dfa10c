"""Files that only the user may write or read: whether that holds, and reading and making files that hold a secret.

By owner and mode bits; on Windows by access lists, and only for files that hold a secret: who else may write a
settings file or a manifest there is not asked (R-CONF-2).
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from goat_mcp.core import platform, posix
from goat_mcp.state import windows_files
from goat_mcp.state.own_file import make_own_folder, open_own

_ROOT = 0
_UNMAPPED = 65534
"""Whom a folder of the host's root belongs to, seen from a container with users of its own."""


def why_not_ours(found: os.stat_result) -> str:
    """Why a file that should be the user's own is not; empty if it is."""
    if not platform.HAS_FILE_MODES or found.st_uid == posix.geteuid():
        return ""
    return f"belongs to another user (uid {found.st_uid})"


def why_writable(found: os.stat_result) -> str:
    """How somebody else could change what is there; empty if nobody can. The system's own files are trusted."""
    if not platform.HAS_FILE_MODES:
        return ""
    if found.st_uid not in (posix.geteuid(), _ROOT, _UNMAPPED):
        return why_not_ours(found)
    if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_private_group(found.st_gid)):
        return f"can be written by others (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def why_readable(found: os.stat_result) -> str:
    """How somebody else could read what is there; empty if nobody can."""
    if not platform.HAS_FILE_MODES or not found.st_mode & 0o077:
        return ""
    return f"can be read by others (mode {stat.S_IMODE(found.st_mode):04o})"


def why_folder_unsafe(folder: Path, *, shared_is_safe: bool = False) -> str:
    """Why a file in `folder` could be replaced by somebody else; empty if it could not.

    A shared folder such as /tmp may be above it, since nobody renames there what is not theirs; for `folder` itself
    `shared_is_safe` says. Raises `OSError`.
    """
    if not platform.HAS_FILE_MODES:
        return ""
    real = folder.resolve(strict=True)
    for place in (real, *real.parents):
        found = place.stat()
        is_shared = (shared_is_safe or place != real) and bool(found.st_mode & stat.S_ISVTX)
        if is_shared and found.st_uid in (posix.geteuid(), _ROOT, _UNMAPPED):
            continue
        if reason := why_writable(found):
            return f"is in {place}, which {reason}"
    return ""


def _is_private_group(group: int) -> bool:
    """Many systems give each user a group of their own and let it write by default: nobody else is in it."""
    try:
        name, members = posix.group_members(group)
        return name == posix.user_name() and set(members) <= {name}
    except KeyError:
        return False


MAX_BYTES = 64 * 1024


class UnsafeFile(Exception):
    """A secret's file that cannot be used. The text goes on after the file's name: `can be read by others (...)`."""


def read_secret_file(path: Path, *, max_bytes: int = MAX_BYTES) -> str:
    """The text of a regular file of ours, 0600, no link, in a folder that only we can write.

    What was checked is what is read. Raises `UnsafeFile`, and `FileNotFoundError` if there is none.
    """
    try:
        descriptor = open_own(path, os.O_RDONLY | posix.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as problem:
        is_link = problem.errno in (errno.ELOOP, errno.EMLINK)
        raise UnsafeFile("is a symbolic link" if is_link else f"cannot be opened: {problem.strerror}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeFile("is not a regular file")
        if reason := why_not_ours(found) or why_readable(found) or _list_problem(path) or _folder_problem(path):
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
    """Make a new file of ours, 0600; its folder is made 0700 if there is none.

    Raises `UnsafeFile`, and `FileExistsError`.
    """
    try:
        _make_folder(path.parent)
        if reason := _folder_problem(path):
            raise UnsafeFile(reason)
        descriptor = open_own(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        raise
    except OSError as problem:
        raise UnsafeFile(f"cannot be made: {problem.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
        if reason := _list_problem(path):
            path.unlink()
            raise UnsafeFile(reason)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            make_own_folder(folder)


def _list_problem(path: Path) -> str:
    """Who else has access to a secret, by its access list; empty on POSIX."""
    return windows_files.why_readable_by_others(path) if platform.SYSTEM == "windows" else ""


def _folder_problem(path: Path) -> str:
    try:
        if platform.SYSTEM == "windows" and (reason := windows_files.why_replaceable_by_others(path.parent)):
            return f"is in {path.parent}, which {reason}"
        return why_folder_unsafe(path.parent)
    except OSError as problem:
        return f"is in a folder that cannot be looked at: {problem.strerror}"
