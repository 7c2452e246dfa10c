"""Locks between processes: on an open file, which the system unlocks when its holder dies or closes it.

A lock keeps nobody from reading or writing the file. On Windows, where a locked range cannot be read by others, it lies
on a byte that no file is long enough to hold; libraries for locks take the beginning of the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

_POLL_S = 0.02


class LockTimeout(Exception):
    """Somebody else has held it all the time."""


@asynccontextmanager
async def file_lock(path: Path, max_wait_s: float) -> AsyncGenerator[None]:
    """Hold the lock of this file, which is made if need be and never removed. Raises `LockTimeout` and `OSError`.

    Two holders in one process exclude each other as well. Asked for again and again, so that a cancelled wait
    leaves nothing behind.
    """
    import anyio  # not there for what cleans up behind a killed server: it runs without installed packages

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline_s = anyio.current_time() + max_wait_s
        while not try_lock(descriptor):
            if anyio.current_time() > deadline_s:
                raise LockTimeout(f"{path} was locked for {max_wait_s:g} s")
            await anyio.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)  # gives the lock back


@contextmanager
def exclusive(path: Path) -> Generator[None]:
    """Wait for the lock, hold it for the block. Raises `OSError` if the file cannot be made. Blocks its thread."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)


if sys.platform != "win32":
    import fcntl

    def try_lock(descriptor: int, *, shared: bool = False) -> bool:
        """Take the lock of an open file; False if somebody has it. `OSError` if its file system has no locks."""
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock(descriptor: int, *, shared: bool = False) -> None:
        """Wait for the lock of an open file. Blocks its thread."""
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)

    def unlock(descriptor: int) -> None:
        """Give the lock back; closing the file does so too."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)

else:
    import msvcrt
    from typing import TYPE_CHECKING

    import pywintypes
    import win32con
    import win32file
    import winerror

    if TYPE_CHECKING:
        import _win32typing

    _FAR_OFF = 0x7FFF_FFFF

    def _whole() -> _win32typing.PyOVERLAPPED:
        where = pywintypes.OVERLAPPED()
        where.OffsetHigh = _FAR_OFF
        return where

    def _take(descriptor: int, flags: int) -> None:
        try:
            win32file.LockFileEx(msvcrt.get_osfhandle(descriptor), flags, 1, 0, _whole())  # pyright: ignore[reportUnknownMemberType]  # its stub has untyped parameters
        except pywintypes.error as problem:
            raise OSError(None, problem.strerror, None, problem.winerror) from None

    def try_lock(descriptor: int, *, shared: bool = False) -> bool:
        """Take the lock of an open file; False if somebody has it. `OSError` if its file system has no locks."""
        try:
            flags = win32con.LOCKFILE_FAIL_IMMEDIATELY | (0 if shared else win32con.LOCKFILE_EXCLUSIVE_LOCK)
            _take(descriptor, flags)
        except OSError as problem:
            if problem.winerror in (winerror.ERROR_LOCK_VIOLATION, winerror.ERROR_IO_PENDING):
                return False
            raise
        return True

    def lock(descriptor: int, *, shared: bool = False) -> None:
        """Wait for the lock of an open file. Blocks its thread."""
        _take(descriptor, 0 if shared else win32con.LOCKFILE_EXCLUSIVE_LOCK)

    def unlock(descriptor: int) -> None:
        """Give the lock back; closing the file does so too."""
        win32file.UnlockFileEx(msvcrt.get_osfhandle(descriptor), 1, 0, _whole())  # pyright: ignore[reportUnknownMemberType]  # as above
