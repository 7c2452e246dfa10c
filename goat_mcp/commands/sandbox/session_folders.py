"""A directory for each session's temporary files: its commands find there what earlier ones left, nobody else does.

Where a command sees it is for the ways to confine. All of a process lie in one directory that it keeps locked.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SESSIONS = "tmp"
"""The name of the directory for all processes."""
_HELD = "held-"
"""Only what is called so is locked, or left by a crash: one that is just being made is not locked yet."""


class SessionFolders:
    """For any thread. `folder` gives a private directory for all processes; `before_first` is called once."""

    def __init__(self, folder: Callable[[], Path], before_first: Callable[[], None] = lambda: None) -> None:
        self._folder = folder
        self._before_first = before_first
        self._lock = threading.Lock()
        self._descriptor = -1
        self._own: Path | None = None

    def of(self, principal: str, session_key: str) -> Path:
        """The directory of one session, 0700, made where it is not there. Raises `OSError`."""
        name = hashlib.sha256(repr((principal, session_key)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        with self._lock:
            if self._own is None:
                self._own = self._make()
            path = self._own / name
            path.mkdir(mode=0o700, exist_ok=True)
            return path

    def close(self) -> None:
        """Remove those of this process, with all that is in them."""
        with self._lock:
            own, self._own = self._own, None
            if own is not None:
                shutil.rmtree(own, ignore_errors=True)
                os.close(self._descriptor)

    def _make(self) -> Path:
        import fcntl

        folder = self._folder()
        remove_left_over(folder)
        self._before_first()
        name = secrets.token_hex(8)
        new = folder / f"new-{name}"
        new.mkdir(mode=0o700)
        self._descriptor = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        return new.rename(folder / f"{_HELD}{name}")


def remove_left_over(folder: Path) -> None:
    """Remove what processes that are no more have left in `folder`."""
    import fcntl

    for path in folder.glob(f"{_HELD}*"):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)
