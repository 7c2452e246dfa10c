"""Reaching a path below a root by descriptors, so that no link can lead out: `openat2`, else name by name.

Linux knows more than Python's `os` offers: `openat2` confines the resolution of a path, and the type of a file system
tells what belongs to the kernel itself. Reading, writing and error texts are not here. Everything raises plain OSError;
EXDEV means "outside".
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from goat_mcp.core import platform, posix
from goat_mcp.files.workspace.directory import Directory, PosixDirectory, descriptor_path
from goat_mcp.files.workspace.roots import MAX_PATH_CHARS, Names, Root, Roots

_OPENAT2 = 437
"""The same number on every Linux architecture but the two that number calls their own way."""
_OWN_NUMBERS = ("alpha", "mips")
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_AGAIN = 64
_STATFS_BYTES = 256

_KERNEL_FILE_SYSTEMS = frozenset(
    {
        0x9FA0,  # proc
        0x62656572,  # sysfs
        0x27E0EB,  # cgroup
        0x63677270,  # cgroup2
        0x64626720,  # debugfs
        0x74726163,  # tracefs
        0x73636673,  # securityfs
        0xCAFE4A11,  # bpf
        0x62656570,  # configfs
        0x1CD1,  # devpts
    }
)


class Kernel:
    """What the running kernel offers. `without_openat2` acts as if it were older."""

    def __init__(self, *, without_openat2: bool = False) -> None:
        self._without_openat2 = without_openat2

    @cached_property
    def has_openat2(self) -> bool:
        """Found out by one call: filters in containers answer ENOSYS or EPERM."""
        if self._without_openat2 or platform.SYSTEM != "linux":
            return False
        if posix.machine().startswith(_OWN_NUMBERS) or self._libc is None:
            return False
        root = os.open("/", posix.O_PATH | posix.O_DIRECTORY)
        try:
            os.close(self.open_beneath(root, ".", posix.O_PATH | posix.O_CLOEXEC))
        except OSError:
            return False
        finally:
            os.close(root)
        return True

    @cached_property
    def _libc(self) -> Any:
        try:
            import ctypes  # some milliseconds that only the first opened file pays
        except ImportError:
            return None
        return ctypes.CDLL(None, use_errno=True)

    def open_beneath(self, dir_fd: int, relative: str, flags: int) -> int:
        """`openat2` with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS. OSError EXDEV: the path would leave."""
        import ctypes

        how = (ctypes.c_uint64 * 3)(flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
        name = ctypes.c_char_p(os.fsencode(relative))
        for _ in range(_AGAIN):
            fd = self._libc.syscall(
                ctypes.c_long(_OPENAT2), ctypes.c_int(dir_fd), name, ctypes.byref(how), ctypes.c_size_t(24)
            )
            if fd >= 0:
                return int(fd)
            problem = ctypes.get_errno()
            # EAGAIN: something was renamed while a `..` was resolved, and the kernel could not be sure
            if problem not in (errno.EAGAIN, errno.EINTR):
                raise OSError(problem, os.strerror(problem), relative)
        raise OSError(errno.EXDEV, "kept changing while it was opened", relative)

    def is_kernel_file_system(self, opened: int | Directory) -> bool:
        """The file is the kernel speaking (proc, sysfs, ...), wherever that file system is mounted."""
        if platform.SYSTEM != "linux" or self._libc is None:
            return False
        import ctypes

        fd = opened if isinstance(opened, int) else opened.fileno()
        answer = (ctypes.c_long * (_STATFS_BYTES // ctypes.sizeof(ctypes.c_long)))()
        if self._libc.fstatfs(ctypes.c_int(fd), ctypes.byref(answer)) != 0:
            return False
        return (answer[0] & 0xFFFFFFFF) in _KERNEL_FILE_SYSTEMS


MAX_LINKS = 40
MAX_TURNS = 256
"""How often a walk may start again for a `..`; each costs the depth of the path."""


@dataclass(frozen=True)
class Location:
    """Where a path really is: an open directory and a name in it that is no link.

    `name` is `.` for a root itself. `missing` are the names, from `name` on, that do not exist yet;
    `dangling` says that a link led to the first of them.
    """

    root: Root
    parent: Path
    directory: Directory
    name: str
    stat: os.stat_result | None
    missing: Names = ()
    dangling: bool = False

    @property
    def real(self) -> Path:
        return self.parent.joinpath(self.name, *self.missing[1:])

    def __enter__(self) -> Location:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.directory.close()


_Opened = TypeVar("_Opened", int, Directory)


class Beneath:
    """Opens and finds what lies below the roots."""

    def __init__(self, roots: Callable[[], Roots], kernel: Kernel) -> None:
        self._roots = roots
        self._kernel = kernel

    def open(self, root: Root, names: Names, flags: int) -> tuple[int, Path]:
        """Open a file for reading. Returns the descriptor and the real path of what it is."""
        found = self._open_at_once(root, names, flags)
        return found or self._open_by_walk(root, names, lambda at: at.directory.open(at.name, flags))

    def open_directory(self, root: Root, names: Names) -> tuple[Directory, Path]:
        """Open a directory that may be listed. Returns it and its real path."""
        if (found := self._open_at_once(root, names, os.O_RDONLY | posix.O_DIRECTORY)) is not None:
            return PosixDirectory(found[0]), found[1]
        return self._open_by_walk(root, names, lambda at: at.directory.enter(at.name, to_list=True))

    def _open_at_once(self, root: Root, names: Names, flags: int) -> tuple[int, Path] | None:
        """By one call to the kernel; None if only a walk can tell."""
        if not self._kernel.has_openat2 or root.folds:  # the kernel may answer with the name as it was asked for
            return None
        pin = root.pin()
        top = pin.directory.fileno()
        try:
            fd = self._kernel.open_beneath(top, "/".join(names) or ".", flags)
        except OSError as problem:
            # a link may still lead to another root, or name this one from `/`: the walk knows
            if problem.errno != errno.EXDEV:
                raise
            return None
        if (real := _real_path(root, pin.directory, fd)) is not None:
            return self._admitted(fd, real)
        os.close(fd)
        return None

    def _open_by_walk(self, root: Root, names: Names, open: Callable[[Location], _Opened]) -> tuple[_Opened, Path]:
        for _ in range(MAX_LINKS):
            with self.locate(root, names) as location:
                if location.stat is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), location.name)
                try:
                    opened = open(location)
                except OSError as problem:
                    if problem.errno != errno.ELOOP:  # became a link since: look where it leads
                        raise
                    continue
                if (real := _verified(location, opened)) is not None:
                    return self._admitted(opened, real)
                _close(opened)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def stat(self, root: Root, names: Names) -> os.stat_result | None:
        """What is there, links followed; None if nothing is."""
        with suppress(NotADirectoryError), self.locate(root, names) as location:
            return location.stat
        return None

    def exists(self, root: Root, names: Names) -> bool:
        """Something is there and inside."""
        with suppress(OSError):
            return self.stat(root, names) is not None
        return False

    def locate(self, root: Root, names: Names) -> Location:
        """Follow every link to the directory and name where the path ends, existing or not."""
        if sum(map(len, names)) + len(names) > MAX_PATH_CHARS:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        location = _Walk(self._roots(), root, names).run()
        try:
            location = _verified_place(location)
            if self._roots().holding(location.real) is None or self._kernel.is_kernel_file_system(location.directory):
                raise OSError(errno.EXDEV, "outside", str(location.real))
        except BaseException:
            location.directory.close()
            raise
        return location

    def _admitted(self, opened: _Opened, real: Path) -> tuple[_Opened, Path]:
        if self._roots().holding(real) is not None and not self._kernel.is_kernel_file_system(opened):
            return opened, real
        _close(opened)
        raise OSError(errno.EXDEV, "outside", str(real))


class _Walk:
    """One path, name by name. Links are read as text and resolved from where they stand, never by the kernel."""

    def __init__(self, roots: Roots, root: Root, names: Names) -> None:
        self._roots = roots
        self._root = root
        self._at: Directory = root.pin().directory.duplicate()
        self._real: list[str] = []
        self._pending: deque[tuple[str, bool]] = deque((name, False) for name in names)
        self._links = 0
        self._turns = 0

    def run(self) -> Location:
        try:
            while self._pending:
                name, from_link = self._pending.popleft()
                if name == "..":
                    self._go_up()
                elif (location := self._step(name, from_link)) is not None:
                    return location
            return self._location(".", self._at.status())
        except BaseException:
            self._at.close()
            raise

    def _step(self, name: str, from_link: bool) -> Location | None:
        """Go into `name`; the place if the path ends here."""
        try:
            if not self._pending:
                found = self._at.stat(name)
                if stat.S_ISLNK(found.st_mode):
                    return self._follow(name, from_link)
                return self._location(self._spelled(name), found)
            below = self._at.enter(name)
            name = self._spelled(name)
        except FileNotFoundError:
            missing = (name, *(pending for pending, _ in self._pending))
            if ".." in missing:
                raise
            return self._location(name, None, missing, from_link)
        except OSError as problem:
            if problem.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            return self._follow(name, from_link)
        self._at.close()
        self._at = below
        self._real.append(name)
        return None

    def _spelled(self, name: str) -> str:
        return self._at.spelled(name) if self._root.folds else name

    def _follow(self, name: str, from_link: bool) -> None:
        """Put where a link leads in the place of its name."""
        try:
            target = self._at.read_link(name)
        except OSError as problem:
            if problem.errno != errno.EINVAL:
                raise
            kind = self._at.stat(name).st_mode
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
        pin = root.pin()  # held while it is used: another thread may pin the root again
        top = pin.directory.duplicate()
        self._at.close()
        self._at, self._root, self._real = top, root, []

    def _location(
        self, name: str, found: os.stat_result | None, missing: Names = (), dangling: bool = False
    ) -> Location:
        return Location(self._root, self._root.real.joinpath(*self._real), self._at, name, found, missing, dangling)


def _verified_place(location: Location) -> Location:
    """With the path of its directory in the system's own words. Raises EXDEV if it was moved out since."""
    if not platform.HAS_GETPATH or location.directory.status().st_nlink == 0:
        return location
    parent = _real_path(location.root, location.root.pin().directory, location.directory)
    if parent is None:
        raise OSError(errno.EXDEV, "outside", str(location.real))
    return replace(location, parent=parent)


def _verified(location: Location, opened: int | Directory) -> Path | None:
    """The real path of what was opened there, in the system's own words if it has any; None if it was moved out since.

    Of a file with several names the system may know another one.
    """
    if not platform.HAS_GETPATH or (isinstance(opened, int) and os.fstat(opened).st_nlink > 1):
        return location.real
    return _real_path(location.root, location.root.pin().directory, opened)


def _real_path(root: Root, top: Directory, opened: int | Directory) -> Path | None:
    """Where something open is below `root`, as the kernel tells; None if it has moved or gone since."""
    is_file = isinstance(opened, int)
    above, path = top.known_path(), descriptor_path(opened) if is_file else opened.known_path()
    if above is None or path is None or (os.fstat(opened) if is_file else opened.status()).st_nlink == 0:
        return None
    if path == above:
        return root.real
    if path.endswith(" (deleted)"):  # or a name like that: the walk can tell
        return None
    prefix = above.rstrip("/") + "/"
    return root.real / path[len(prefix) :] if path.startswith(prefix) else None


def _close(opened: int | Directory) -> None:
    if isinstance(opened, int):
        os.close(opened)
    else:
        opened.close()
