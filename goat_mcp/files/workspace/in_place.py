"""Writing over a file that cannot be replaced: a mount of its own, or in a folder that takes no new files."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from goat_mcp.files.workspace.beneath import Place
from goat_mcp.files.workspace.roots import NO_FOLLOW
from goat_mcp.files.workspace.temp_files import write_all

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_in_place(place: Place, data: bytes) -> os.stat_result:
    """Overwrite, for files that cannot be replaced. The old bytes come back where the new ones do not fit.

    Returns what is there afterwards. A process killed meanwhile leaves a mixture: there is no second file
    to fall back on.
    """
    fd = os.open(place.name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | NO_FOLLOW, dir_fd=place.parent_fd)
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
    if size <= before.st_size or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as problem:
        if problem.errno in FULL:
            os.ftruncate(fd, before.st_size)
            _restore_times(fd, before)
            raise


def _restore_times(fd: int, before: os.stat_result) -> None:
    with suppress(PermissionError):  # only the owner may
        os.utime(fd, ns=(before.st_atime_ns, before.st_mtime_ns))
