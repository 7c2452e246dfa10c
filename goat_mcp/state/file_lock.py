"""Locks between processes: on a file that the system unlocks when its holder dies."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio

_POLL_S = 0.02


class LockTimeout(Exception):
    """Somebody else has held it all the time."""


@asynccontextmanager
async def file_lock(path: Path, max_wait_s: float) -> AsyncGenerator[None]:
    """Hold the lock of this file, which is made if need be and never removed. Raises `LockTimeout` and `OSError`.

    Two holders in one process exclude each other as well. Asked for again and again, so that a cancelled wait
    leaves nothing behind.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline_s = anyio.current_time() + max_wait_s
        while not _taken(descriptor):
            if anyio.current_time() > deadline_s:
                raise LockTimeout(f"{path} was locked for {max_wait_s:g} s")
            await anyio.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)  # gives the lock back


if os.name == "nt":

    def _taken(descriptor: int) -> bool:
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # pyright: ignore  # not there on POSIX
        except OSError:
            return False
        return True

else:

    def _taken(descriptor: int) -> bool:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def exclusive(path: Path) -> Generator[None]:
    """Wait for the lock, hold it for the block. Raises `OSError` if the file cannot be made. Blocks its thread."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if os.name == "nt":
            import msvcrt

            # One byte stands for the whole; it waits ten seconds and then raises.
            msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # pyright: ignore  # only there on Windows
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
