"""One writer per file: in turn within the process, and by an advisory lock between our processes.

The lock files lie in a private folder, never beside the user's file. Foreign programs do not know of them.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.core import platform, posix
from goat_mcp.core.context import WAIT_LIMIT_S
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.file_lock import try_lock
from goat_mcp.state.own_file import make_own_folder, open_own

FIRST_WAIT_S = 0.002
LONGEST_WAIT_S = 0.05


class _Turns:
    """The waiting line of one file, and how many stand in it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class FileLocks:
    """Locks by real path; `key` is the same for all spellings of one. A line nobody stands in is forgotten, and its
    lock file removed."""

    def __init__(self, folder: Path, key: Callable[[Path], str] = str) -> None:
        self._folder = folder
        self._key = key
        self._turns: dict[str, _Turns] = {}

    @asynccontextmanager
    async def hold(self, real_path: Path, wait_limit_s: float = WAIT_LIMIT_S) -> AsyncGenerator[None]:
        """Wait for this file's turn without holding up the event loop. `ToolError(BUSY)` after `wait_limit_s`."""
        key = self._key(real_path)
        turns = self._turns.setdefault(key, _Turns())
        turns.users += 1
        try:
            lock_file = await self._acquire(turns, key, real_path, wait_limit_s)
            try:
                yield
            finally:
                if lock_file is not None:
                    lock_file.release()
                turns.lock.release()
        finally:
            turns.users -= 1
            if turns.users == 0:
                del self._turns[key]

    async def _acquire(self, turns: _Turns, key: str, real_path: Path, wait_limit_s: float) -> _LockFile | None:
        try:
            async with asyncio.timeout(wait_limit_s):
                await turns.lock.acquire()
                try:
                    return await self._between_processes(key)
                except BaseException:
                    turns.lock.release()
                    raise
        except TimeoutError:
            raise ToolError(
                ErrorCode.BUSY, f"another change of {real_path} is still under way", "Try again in a moment."
            ) from None

    async def _between_processes(self, key: str) -> _LockFile | None:
        path = self._folder / f"{hashlib.sha256(os.fsencode(key)).hexdigest()[:32]}.lock"
        wait_s = FIRST_WAIT_S
        while True:
            try:
                if (lock_file := _LockFile.try_open(path)) is not None:
                    return lock_file
            except OSError:
                return None  # no private folder, or no locks in it: turns within the process still hold
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)


@dataclass(frozen=True)
class _LockFile:
    """A lock file this process holds."""

    fd: int
    path: Path

    @classmethod
    def try_open(cls, path: Path) -> _LockFile | None:
        """None while another process holds it. Raises OSError if locks cannot be had."""
        try:
            fd = open_private(path)
        except PermissionError:
            if platform.SYSTEM == "windows" and os.path.lexists(path):  # its last holder is removing it
                return None
            raise
        try:
            # its last holder removed the file: a lock on a file without a name protects nothing
            if try_lock(fd) and _still_named(fd, path):
                return cls(fd, path)
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return None

    def release(self) -> None:
        with suppress(OSError):
            self.path.unlink()
        os.close(self.fd)


def open_private(path: Path) -> int:
    """Open a file for locking, made if need be, in a folder that is this user's alone."""
    folder = path.parent
    if not platform.HAS_FILE_MODES:
        with suppress(FileExistsError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            make_own_folder(folder)
        return open_own(path, os.O_RDWR | os.O_CREAT)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    owner = folder.lstat()
    if owner.st_uid != posix.getuid() or owner.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "not a private folder", str(folder))
    return os.open(path, os.O_RDWR | os.O_CREAT | posix.O_NOFOLLOW, 0o600)


def _still_named(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False
