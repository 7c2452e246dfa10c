"""Opens an absolute path without following any link: the result lies where the path says."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from types import TracebackType

from goat_mcp.core import posix

_DIRECTORY = posix.O_PATH | posix.O_DIRECTORY
_ANY = posix.O_PATH
_NO_FOLLOW = posix.O_NOFOLLOW


class NoFollow:
    """Opens paths; directories on the way stay open until the end of the `with`."""

    def __init__(self) -> None:
        self._folders: dict[Path, int] = {}

    def __enter__(self) -> NoFollow:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        for descriptor in self._folders.values():
            os.close(descriptor)
        self._folders.clear()

    def folder(self, path: Path) -> int:
        """A descriptor of the directory; the caller must not close it. Raises `OSError`, also for a link on the way."""
        if (known := self._folders.get(path)) is not None:
            return known
        if path.parent == path:
            descriptor = os.open(path, _DIRECTORY)
        else:
            descriptor = os.open(path.name, _DIRECTORY | _NO_FOLLOW, dir_fd=self.folder(path.parent))
        self._folders[path] = descriptor
        return descriptor

    def open(self, path: Path) -> int:
        """A descriptor of the path, which the caller closes. Raises `OSError`, also for a link."""
        if path.parent == path:
            return os.open(path, _DIRECTORY)
        descriptor = os.open(path.name, _ANY | _NO_FOLLOW, dir_fd=self.folder(path.parent))
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):  # O_PATH opens a link itself
            os.close(descriptor)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        return descriptor
