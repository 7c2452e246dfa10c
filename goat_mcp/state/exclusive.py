"""One process at a time: a lock beside a file that several processes read, change and replace.

The lock is a file of its own, since the file it guards is replaced and not written to. It ends with its holder.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path) -> Generator[None]:
    """Wait for the lock, hold it for the block. Raises `OSError` where the file cannot be made. Blocks its thread."""
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
