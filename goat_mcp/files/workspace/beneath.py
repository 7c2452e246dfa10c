"""Reaching a path below a root by descriptors, so that no link can lead out: `openat2`, else name by name.

What is not here: reading, writing and the words of errors. Everything raises plain OSError; EXDEV means "outside".
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from goat_mcp.files.workspace.kernel import Kernel, descriptor_path
from goat_mcp.files.workspace.roots import DIRECTORY_FLAGS, MAX_PATH_CHARS, NO_FOLLOW, Names, Root, Roots

MAX_LINKS = 40
MAX_TURNS = 256
"""How often a walk may start anew for a `..`; each costs the depth of the path."""


@dataclass(frozen=True)
class Place:
    """Where a path really is: an open directory and a name in it that is no link.

    `name` is `.` for a root itself. `missing` are the names, from `name` on, that do not exist yet;
    `dangling` says that a link led to the first of them.
    """

    root: Root
    parent: Path
    parent_fd: int
    name: str
    stat: os.stat_result | None
    missing: Names = ()
    dangling: bool = False

    @property
    def real(self) -> Path:
        return self.parent.joinpath(self.name, *self.missing[1:])

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.parent_fd)


class Beneath:
    """Opens and finds what lies below the roots."""

    def __init__(self, roots: Callable[[], Roots], kernel: Kernel) -> None:
        self._roots = roots
        self._kernel = kernel

    def open(self, root: Root, names: Names, flags: int) -> tuple[int, Path]:
        """Open for reading. Returns the descriptor and the real path of what it is."""
        if self._kernel.has_openat2:
            pin = root.pin()
            try:
                fd = self._kernel.open_beneath(pin.fd, "/".join(names) or ".", flags)
            except OSError as problem:
                # a link may still lead to another root, or name this one from `/`: the walk knows
                if problem.errno != errno.EXDEV:
                    raise
            else:
                if (real := _real_path(root, pin.fd, fd)) is not None:
                    return self._admitted(fd, real)
                os.close(fd)
        for _ in range(MAX_LINKS):
            with self.locate(root, names) as place:
                if place.stat is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place.name)
                try:
                    fd = os.open(place.name, flags | NO_FOLLOW, dir_fd=place.parent_fd)
                except OSError as problem:
                    if problem.errno != errno.ELOOP:  # became a link since: look where it leads
                        raise
                else:
                    return self._admitted(fd, place.real)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def stat(self, root: Root, names: Names) -> os.stat_result | None:
        """What is there, links followed; None where nothing is."""
        with suppress(NotADirectoryError), self.locate(root, names) as place:
            return place.stat
        return None

    def exists(self, root: Root, names: Names) -> bool:
        """Something is there and inside."""
        with suppress(OSError):
            return self.stat(root, names) is not None
        return False

    def locate(self, root: Root, names: Names) -> Place:
        """Follow every link to the directory and name where the path ends, existing or not."""
        if sum(map(len, names)) + len(names) > MAX_PATH_CHARS:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        place = _Walk(self._roots(), root, names).run()
        try:
            if self._roots().holding(place.real) is None or self._kernel.is_kernel_file_system(place.parent_fd):
                raise OSError(errno.EXDEV, "outside", str(place.real))
        except BaseException:
            os.close(place.parent_fd)
            raise
        return place

    def _admitted(self, fd: int, real: Path) -> tuple[int, Path]:
        if self._roots().holding(real) is None or self._kernel.is_kernel_file_system(fd):
            os.close(fd)
            raise OSError(errno.EXDEV, "outside", str(real))
        return fd, real


class _Walk:
    """One path, name by name. Links are read as text and resolved from where they stand, never by the kernel."""

    def __init__(self, roots: Roots, root: Root, names: Names) -> None:
        self._roots = roots
        self._root = root
        self._fd = -1
        self._real: list[str] = []
        self._pending: deque[tuple[str, bool]] = deque((name, False) for name in names)
        self._links = 0
        self._turns = 0

    def run(self) -> Place:
        self._restart(self._root)
        try:
            while self._pending:
                name, from_link = self._pending.popleft()
                if name == "..":
                    self._go_up()
                elif (place := self._step(name, from_link)) is not None:
                    return place
            return self._place(".", os.fstat(self._fd))
        except BaseException:
            os.close(self._fd)
            raise

    def _step(self, name: str, from_link: bool) -> Place | None:
        """Go into `name`; the place if the path ends here."""
        try:
            if not self._pending:
                found = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode):
                    return self._follow(name, from_link)
                return self._place(name, found)
            below = os.open(name, DIRECTORY_FLAGS | NO_FOLLOW, dir_fd=self._fd)
        except FileNotFoundError:
            missing = (name, *(pending for pending, _ in self._pending))
            if ".." in missing:
                raise
            return self._place(name, None, missing, from_link)
        except OSError as problem:
            if problem.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            return self._follow(name, from_link)
        os.close(self._fd)
        self._fd = below
        self._real.append(name)
        return None

    def _follow(self, name: str, from_link: bool) -> None:
        """Put where a link leads in the place of its name."""
        try:
            target = os.readlink(name, dir_fd=self._fd)
        except OSError as problem:
            if problem.errno != errno.EINVAL:
                raise
            kind = os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_mode
            if not (stat.S_ISDIR(kind) or stat.S_ISLNK(kind)):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name) from None
            self._count_turn()  # it changes between link and directory as we look: look again
            self._pending.appendleft((name, from_link))
            return
        self._links += 1
        if self._links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        names = [part for part in target.split("/") if part not in ("", ".")]
        self._pending.extendleft((part, True) for part in reversed(names))
        if target.startswith("/"):
            self._enter([])

    def _go_up(self) -> None:
        self._count_turn()
        if self._real:
            # from the top again: the parent of an open directory may have moved out of the root since
            self._pending.extendleft((name, False) for name in reversed(self._real[:-1]))
            self._restart(self._root)
            return
        above = list(self._root.names[:-1])
        while self._pending and self._pending[0][0] == "..":
            self._pending.popleft()
            above = above[:-1]
        self._enter(above)

    def _count_turn(self) -> None:
        self._turns += 1
        if self._turns > MAX_TURNS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _enter(self, above: list[str]) -> None:
        """Continue at an absolute place: `above`, then what is pending. It must lead into a root."""
        entries = [*((name, True) for name in above), *self._pending]
        names = tuple(name for name, _ in entries)
        entered = self._roots.enter(names)
        if entered is None:
            raise OSError(errno.EXDEV, "outside", "/" + "/".join(names))
        root, below = entered
        self._pending = deque(entries[len(entries) - len(below) :])
        self._restart(root)

    def _restart(self, root: Root) -> None:
        pin = root.pin()  # held while its number is used: another thread may pin the root anew
        top = os.dup(pin.fd)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._root, self._real = top, root, []

    def _place(self, name: str, found: os.stat_result | None, missing: Names = (), dangling: bool = False) -> Place:
        return Place(self._root, self._root.real.joinpath(*self._real), self._fd, name, found, missing, dangling)


def _real_path(root: Root, root_fd: int, fd: int) -> Path | None:
    """Where an open file is below `root`, as the kernel tells; None if it has moved or gone since."""
    top, path = descriptor_path(root_fd), descriptor_path(fd)
    if top is None or path is None or os.fstat(fd).st_nlink == 0:
        return None
    if path == top:
        return root.real
    if path.endswith(" (deleted)"):  # or a name like that: the walk can tell
        return None
    prefix = top.rstrip("/") + "/"
    return root.real / path[len(prefix) :] if path.startswith(prefix) else None
