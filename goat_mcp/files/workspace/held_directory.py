"""What the jail asks of an open directory, whatever system it is on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self


class Directory(Protocol):
    """Held open: it stays the directory that was found, whatever its path leads to later. Use it in a `with`.

    A name is one name in it, `.` means itself. No method follows a link. All raise `OSError` as POSIX has it, above
    all FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError and those named here.
    """

    def stat(self, name: str) -> os.stat_result:
        """Of a link itself. A relative path is possible, too, if only times matter: links before its end are
        followed."""
        ...

    def read_link(self, name: str) -> str:
        """Raises EINVAL if it is no link."""
        ...

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """A descriptor of a file, never text mode. Raises ELOOP for a link."""
        ...

    def enter(self, name: str, *, to_list: bool = False) -> Directory:
        """A directory in it. `to_list`: fail at once if it may not be listed. Raises ELOOP or NotADirectoryError for
        a link."""
        ...

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """What is in it, without `.` and `..`. Nothing may be changed in between."""
        ...

    def spelled(self, name: str) -> str:
        """How the directory itself spells a name that it takes for this one (`README.md` for `readme.MD`); `name` if
        it has none. Only asked if it does not go by the very characters."""
        ...

    def make(self, name: str, mode: int) -> None: ...

    def remove(self, name: str) -> None:
        """A file or a link."""
        ...

    def remove_folder(self, name: str) -> None:
        """An empty one."""
        ...

    def rename(self, name: str, to: Directory, new_name: str) -> None:
        """Replaces what is there, in one step. The file may be open."""
        ...

    def link(self, name: str, to: Directory, new_name: str) -> None:
        """A second name for a file; fails if there is something. EPERM, EOPNOTSUPP or ENOSYS: no links here."""
        ...

    def status(self) -> os.stat_result:
        """Of the directory itself."""
        ...

    def sync(self) -> None:
        """What was made, renamed and removed in it is on disk, as far as the system can do that."""
        ...

    def known_path(self) -> str | None:
        """Where the system knows it, as it is spelled on disk; None if it does not say."""
        ...

    def fileno(self) -> int:
        """The descriptor, for calls to the kernel. Raises ENOSYS if there are no directory descriptors."""
        ...

    def duplicate(self) -> Directory: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
