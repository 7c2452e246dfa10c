"""An open directory, and what can be done with names in it: all that the jail asks of a system.

POSIX has directory descriptors; `windows_directory` does the same by paths while it keeps every directory above open.
What a path means, and whether it may be touched, is not decided here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

from goat_mcp.core import platform, posix
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace.held_directory import Directory
from goat_mcp.files.workspace.names import comparable

_NO_FOLLOW = posix.O_NOFOLLOW
_LETTERS = re.compile("[A-Za-z]")
_PATH_BYTES = 1024
"""The most that F_GETPATH writes."""


class PosixDirectory:
    """A directory descriptor. Takes over `fd`."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._fd, follow_symlinks=False)

    def read_link(self, name: str) -> str:
        return os.readlink(name, dir_fd=self._fd)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        return os.open(name, flags | _NO_FOLLOW, mode, dir_fd=self._fd)

    def enter(self, name: str, *, to_list: bool = False) -> PosixDirectory:
        flags = os.O_RDONLY if to_list else _to_enter()
        return PosixDirectory(os.open(name, flags | posix.O_DIRECTORY | _NO_FOLLOW, dir_fd=self._fd))

    def entries(self) -> Iterator[os.DirEntry[str]]:
        with self.enter(".", to_list=True) as listed, os.scandir(listed.fileno()) as found:
            yield from found

    def spelled(self, name: str) -> str:
        with suppress(OSError):
            wanted = comparable(name)
            alike = [entry.name for entry in self.entries() if comparable(entry.name) == wanted]
            if name not in alike:
                found = self.stat(name)
                return next((other for other in alike if os.path.samestat(self.stat(other), found)), name)
        return name

    def make(self, name: str, mode: int) -> None:
        os.mkdir(name, mode, dir_fd=self._fd)

    def remove(self, name: str) -> None:
        os.unlink(name, dir_fd=self._fd)

    def remove_folder(self, name: str) -> None:
        os.rmdir(name, dir_fd=self._fd)

    def rename(self, name: str, to: Directory, new_name: str) -> None:
        os.rename(name, new_name, src_dir_fd=self._fd, dst_dir_fd=to.fileno())

    def link(self, name: str, to: Directory, new_name: str) -> None:
        os.link(name, new_name, src_dir_fd=self._fd, dst_dir_fd=to.fileno(), follow_symlinks=False)

    def status(self) -> os.stat_result:
        return os.fstat(self._fd)

    def sync(self) -> None:
        with self.enter(".", to_list=True) as listed:
            os.fsync(listed.fileno())

    def known_path(self) -> str | None:
        return descriptor_path(self._fd)

    def fileno(self) -> int:
        return self._fd

    def duplicate(self) -> PosixDirectory:
        return PosixDirectory(os.dup(self._fd))

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)


def open_directory(path: Path) -> Directory:
    """Open an absolute directory, name by name, following no link at all."""
    if platform.SYSTEM == "windows":
        from goat_mcp.files.workspace.windows_directory import open_windows_directory

        return open_windows_directory(path)
    if not platform.HAS_DIRECTORY_DESCRIPTORS:
        raise ToolError(
            ErrorCode.NOT_CONFIGURED,
            "file tools need directory descriptors, which this platform does not have",
            "Run goat-mcp on Linux or macOS (WSL works) for its file tools.",
        )
    directory = PosixDirectory(os.open("/", _to_enter() | posix.O_DIRECTORY))
    for name in path.parts[1:]:
        with directory:
            below = directory.enter(name)
        directory = below
    return directory


def _to_enter() -> int:
    """These need no permission to list the directory. A system that has neither asks for it."""
    return posix.O_PATH or posix.O_SEARCH or os.O_RDONLY


def spelled_path(path: Path) -> Path:
    """An absolute directory as it is spelled on disk, as far as that can be seen."""
    names: list[str] = []
    with suppress(OSError):
        for above in reversed(path.parents):
            with open_directory(above) as directory:
                names.append(directory.spelled(path.parts[len(names) + 1]))
    return Path(path.anchor, *names, *path.parts[len(names) + 1 :])


@lru_cache(maxsize=1024)
def folds_names(folder: str) -> bool:
    """Whether names in a directory that are spelled differently may be one file (see `comparable`). Found out once,
    by another spelling of a name in it; if it is empty or not there yet, of the nearest directory above."""
    path = Path(folder)
    for place in (path, *path.parents):
        with suppress(OSError, ToolError), open_directory(place) as directory:
            for entry in directory.entries():
                other = _LETTERS.sub(lambda letter: letter[0].swapcase(), entry.name)
                if other != entry.name and (is_one := _is_one(directory, entry.name, other)) is not None:
                    return is_one
    return False


def lies_in(path: str, folder: str) -> bool:
    """Whether an absolute path, by its text, is this directory or below it, in any spelling that means the same."""
    if folds_names(folder):
        path, folder = comparable(path), comparable(folder)
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _is_one(directory: Directory, name: str, other: str) -> bool | None:
    """None if it is gone. Not if both are in it: a hard link has two names wherever it is."""
    with suppress(FileNotFoundError):
        found = directory.stat(name)
        with suppress(FileNotFoundError):
            is_one = os.path.samestat(found, directory.stat(other))
            return is_one and not {name, other} <= {entry.name for entry in directory.entries()}
        directory.stat(name)  # it may have been removed in between, under whatever spelling
        return False
    return None


def descriptor_path(fd: int) -> str | None:
    """The path the kernel knows an open file by, None if it does not say."""
    with suppress(OSError):
        if platform.HAS_PROC:
            return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115  # on every read
        if platform.HAS_GETPATH:
            return os.fsdecode(posix.fcntl(fd, posix.F_GETPATH, bytes(_PATH_BYTES)).rstrip(b"\0"))
    return None
