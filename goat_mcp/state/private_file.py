"""Storing one small file of ours in a private folder: all of it or nothing, 0600, on disk when it returns."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

TEMP_PREFIX = "."


def write_private(path: Path, data: bytes) -> None:
    """Make `data` the whole content. Raises `OSError`. What a killed writer leaves begins with a dot."""
    temp = path.with_name(f"{TEMP_PREFIX}{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temp.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temp.unlink()
        raise
