"""Private directories for temporary files: one for each session, and one for each program without a /tmp of its own.

The process that makes one keeps it locked. So a later process can tell what a crash left from what is in use.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from goat_mcp.core import posix
from goat_mcp.state.file_lock import lock, try_lock

SESSIONS = "tmp"
"""The directory in which all processes have their session folders."""
_HELD = "held-"
"""Only a folder with this prefix is locked, or left by a crash: one that is just being made is not locked yet."""
_PRIVATE = "goat-mcp-sandbox-"
_TOO_YOUNG_S = 60.0
"""A private folder that is just being made is not locked yet."""


class SessionFolders:
    """A directory for each session: its commands find there what earlier ones left, and nobody else does.

    For any thread. `folder` gives a private directory for all processes; `before_first` is called once.
    """

    def __init__(self, folder: Callable[[], Path], before_first: Callable[[], None] = lambda: None) -> None:
        self._folder = folder
        self._before_first = before_first
        self._lock = threading.Lock()
        self._descriptor = -1
        self._own: Path | None = None

    def of(self, principal: str, session_key: str) -> Path:
        """The directory of one session, 0700, created if missing. Raises `OSError`."""
        name = hashlib.sha256(repr((principal, session_key)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        with self._lock:
            if self._own is None:
                self._own = self._make()
            path = self._own / name
            path.mkdir(mode=0o700, exist_ok=True)
            return path

    def close(self) -> None:
        """Remove the folders of this process, with their content."""
        with self._lock:
            own, self._own = self._own, None
            if own is not None:
                shutil.rmtree(own, ignore_errors=True)
                os.close(self._descriptor)

    def _make(self) -> Path:
        folder = self._folder()
        remove_stale_sessions(folder)
        self._before_first()
        name = secrets.token_hex(8)
        new = folder / f"new-{name}"
        new.mkdir(mode=0o700)
        self._descriptor = _locked(new)
        return new.rename(folder / f"{_HELD}{name}")


class PrivateFolder:
    """Makes one for one program, 0700. Raises `OSError`."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PRIVATE))
        self._descriptor = _locked(self.path)

    def remove(self) -> None:
        """Remove it with its content. Once."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._descriptor)


def remove_stale_sessions(folder: Path) -> None:
    """Remove the session folders in `folder` that a crash left."""
    for path in folder.glob(f"{_HELD}*"):
        _remove_unless_locked(path, lambda status: True)


def remove_stale_folders() -> None:
    """Remove the private folders of this user that a crash left."""

    def is_stale(status: os.stat_result) -> bool:
        return status.st_uid == posix.geteuid() and time.time() - status.st_mtime > _TOO_YOUNG_S

    for path in Path(tempfile.gettempdir()).glob(f"{_PRIVATE}*"):
        _remove_unless_locked(path, is_stale)


def _locked(folder: Path) -> int:
    descriptor = os.open(folder, os.O_RDONLY | posix.O_DIRECTORY)
    lock(descriptor)  # nobody else can have it: the folder is new
    return descriptor


def _remove_unless_locked(folder: Path, is_stale: Callable[[os.stat_result], bool]) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW)
        try:
            if is_stale(os.fstat(descriptor)) and try_lock(descriptor):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
