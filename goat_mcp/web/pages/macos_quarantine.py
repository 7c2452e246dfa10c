"""The mark of a downloaded file on macOS, an extended attribute: the Finder asks before it opens or runs one."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

ATTRIBUTE = b"com.apple.quarantine"
_IS_DOWNLOAD = 0x0081
"""What browsers write: downloaded, and nobody has agreed to open it yet."""
_NO_FOLLOW = 1


def quarantine_value(at_s: float, event: uuid.UUID) -> str:
    """`flags;time;agent;id`, the time as hexadecimal seconds since 1970."""
    return f"{_IS_DOWNLOAD:04x};{int(at_s):08x};goat-mcp;{str(event).upper()}"


def mark(path: Path) -> None:
    """Raises `OSError`, for example if the file system has no extended attributes."""
    import ctypes  # Python has setxattr on Linux only; loaded with the first saved file

    value = quarantine_value(time.time(), uuid.uuid4()).encode("ascii")
    libc = ctypes.CDLL(None, use_errno=True)
    size, position = ctypes.c_size_t(len(value)), ctypes.c_uint32(0)
    if libc.setxattr(os.fsencode(path), ATTRIBUTE, value, size, position, ctypes.c_int(_NO_FOLLOW)) != 0:
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem), str(path))
