"""Small state files, written whole or not at all (R-FILE-7), and put aside where they cannot be understood (R-CRASH-1).

Files of a workspace have a writer of their own: other people's files want more care.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

_TEMP_SUFFIX = ".tmp"
_ABANDONED_AFTER_S = 600.0
"""No write of a small file takes so long: what is left of one is a killed process's."""


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` there in one step, 0600. Raises `OSError`; what was there is then still there, whole."""
    _sweep(path.parent)
    temp = path.with_name(f".{path.name[:80]}.{secrets.token_hex(6)}{_TEMP_SUFFIX}")
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
    _sync_folder(path.parent)


def set_aside(path: Path) -> Path | None:
    """Give a damaged file another name, so that somebody can look at it; None where that cannot be done."""
    aside = path.with_name(f"{path.name}.corrupt")
    try:
        path.replace(aside)
    except OSError:
        return None
    return aside


def _sweep(folder: Path) -> None:
    oldest_s = time.time() - _ABANDONED_AFTER_S
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(_TEMP_SUFFIX):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest_s:
                        Path(entry.path).unlink()


def _sync_folder(folder: Path) -> None:
    """Make the new name last. Some systems cannot, and the file is whole there all the same."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
