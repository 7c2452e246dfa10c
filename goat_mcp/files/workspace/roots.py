"""Root directories and paths below them, as text. Only a root itself is opened here; `beneath` does the rest."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.core import platform, posix
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace.directory import Directory, folds_names, open_directory, spelled_path
from goat_mcp.files.workspace.names import comparable
from goat_mcp.processes.wsl import is_too_wide

_KERNEL_FOLDERS = frozenset({"proc", "sys", "dev"})
_MACOS_PREFIXES = frozenset({".vol", ".nofollow", ".resolve"})
"""Absolute paths that begin with one of these are read by the kernel in another way."""
_MACOS_DATA = ("system", "volumes", "data")
_FORKS = "..namedfork"
"""macOS: what lies below this name in a file is another part of the file."""
MAX_PATH_CHARS = 4096

Names = tuple[str, ...]


@dataclass(frozen=True)
class WorkspacePath:
    """A path below a root, as asked for. `..` stays in it: only the one who opens it knows what it means."""

    root: Path
    relative: str

    @property
    def path(self) -> Path:
        """Absolute, in the words of the caller: links are not resolved."""
        return self.root / self.relative

    @property
    def names(self) -> Names:
        return split_names(self.relative)

    @property
    def plain(self) -> str:
        """The same as text, each `..` taken back with the name before it: for rules about paths, not for opening."""
        return absolute(collapse((*split_names(self.root.as_posix()), *self.names)))

    def __str__(self) -> str:
        return str(self.path)


def split_names(path: str) -> Names:
    """The names of a path, without empty ones and `.`; `..` is kept."""
    return tuple(name for name in path.split("/") if name not in ("", "."))


def absolute(names: Names) -> str:
    """The path of names counted from the top, on Windows from a drive: `/dir/file`, `C:/dir/file`."""
    path = "/".join(names)
    if platform.SYSTEM != "windows":
        return f"/{path}"
    return path if len(names) != 1 else f"{path}/"


def collapse(names: Iterable[str]) -> Names:
    """Names with each `..` taken back with the one before it, as text. Never good enough to open anything."""
    kept: list[str] = []
    for name in names:
        if name != "..":
            kept.append(name)
        elif kept:
            kept.pop()
    return tuple(kept)


def is_kernel_path(names: Names) -> bool:
    """Below /proc, /sys or /dev, or a name that macOS gives another meaning. Shared memory is plain files, and only
    reached if a root lies in it."""
    if platform.SYSTEM == "macos":
        names = tuple(map(comparable, names))
        if _FORKS in names or has_other_meaning(names):
            return True
    return not _KERNEL_FOLDERS.isdisjoint(names[:1]) and names[:2] != ("dev", "shm")


def has_other_meaning(names: Names) -> bool:
    """Whether an absolute path is one that macOS reads in another way: such a path may mean any file."""
    return platform.SYSTEM == "macos" and not _MACOS_PREFIXES.isdisjoint(map(comparable, names[:1]))


def is_second_name(names: Names) -> bool:
    """Whether an absolute path goes by where macOS keeps the disk of `/Users` and others: no link tells that they are
    the same."""
    return platform.SYSTEM == "macos" and tuple(map(comparable, names[:3])) == _MACOS_DATA


def _short_spelling(names: Names) -> Names:
    """macOS keeps /tmp and /var below /private; people and programs leave that out."""
    return names[1:] if platform.SYSTEM == "macos" and names[:1] == ("private",) else names


class Pin:
    """An open directory that closes when nobody uses it any more."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        self._close = weakref.finalize(self, directory.close)


class Root:
    """One directory tree files may be reached in, pinned by an open descriptor."""

    def __init__(self, given: Path, *, writable: bool) -> None:
        real = os.path.realpath(given)
        self.folds = folds_names(real)
        """Whether a name in it may be spelled in several ways. Everything is compared by `key` then."""
        self.real = spelled_path(Path(real)) if self.folds else Path(real)
        self.writable = writable
        self.names = split_names(self.real.as_posix())
        as_given = split_names(Path(os.path.abspath(given)).as_posix())  # noqa: PTH100 - links must stay as they are spelled
        spellings = set(map(self.key, (self.names, as_given, _short_spelling(self.names))))
        self._spellings = sorted(spellings, key=len, reverse=True)
        self._pin: Pin | None = None
        if is_kernel_path(self.names) or self.names == ("dev", "shm"):
            raise ToolError(
                ErrorCode.PATH_OUTSIDE,
                f"{given} cannot be a root: it belongs to the kernel",
                "Choose a project directory.",
            )

    def key(self, names: Names) -> Names:
        """Equal for all spellings of a path below it."""
        return tuple(map(comparable, names)) if self.folds else names

    def depth_of(self, names: Names) -> int:
        """How many of the names, counted from `/`, lead to it; -1 if they lead elsewhere."""
        key = self.key(names)
        for spelling in self._spellings:
            if key[: len(spelling)] == spelling:
                return len(spelling)
        return -1

    def pin(self) -> Pin:
        """The open directory. If it was deleted and made again, it is pinned again. Raises OSError if missing."""
        pin = self._pin
        if pin is not None and self._is_current(pin):
            return pin
        try:
            self._pin = Pin(open_directory(self.real))
        except OSError:
            if pin is None:
                raise
            return pin
        return self._pin

    def _is_current(self, pin: Pin) -> bool:
        try:
            there = os.lstat(self.real)
        except OSError:
            return False
        return os.path.samestat(there, pin.directory.status())


class Roots:
    """The roots of one workspace: which of them a path belongs to, by its text alone."""

    def __init__(self, writable: Sequence[Path], readable: Sequence[Path]) -> None:
        self.writable = [Root(path, writable=True) for path in writable]
        self.real = tuple(root.real for root in self.writable)
        readers = [Root(path, writable=False) for path in readable]
        taken = {root.real for root in self.writable}
        self._all = [*self.writable, *(root for root in readers if root.real not in taken)]
        self.some_fold = any(root.folds for root in self._all)
        self._by_real = {root.real: root for root in reversed(self._all)}

    def of(self, path: WorkspacePath) -> Root | None:
        return self._by_real.get(path.root)

    def enter(self, names: Names) -> tuple[Root, Names] | None:
        """The deepest root that `names`, counted from `/`, lead into, and the names below it."""
        best: tuple[Root, Names] | None = None
        deepest = -1
        for root in self._all:
            if (depth := root.depth_of(names)) > deepest:
                best, deepest = (root, names[depth:]), depth
        return best

    def holding(self, real: Path) -> Root | None:
        """The deepest root that a real path lies in; None outside, and for the kernel's own folders."""
        names = split_names(real.as_posix())
        if is_kernel_path(names):
            return None
        best: Root | None = None
        for root in self._all:
            above = names[: len(root.names)]
            is_inside = above == root.names or (root.folds and root.key(above) == root.key(root.names))
            if is_inside and (best is None or len(root.names) > len(best.names)):
                best = root
        if best is not None and names[:2] == ("dev", "shm") and best.names[:2] != ("dev", "shm"):
            return None
        return best


def private_folder() -> Path:
    """Where the processes of this user meet for locks: the same for all of them, whatever their settings."""
    if platform.SYSTEM == "windows":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "goat-mcp" / "locks"
    return Path(f"/tmp/goat-mcp-{posix.getuid()}")  # not TMPDIR: hosts do not pass the same one to all


def default_roots() -> list[Path]:
    """The current directory, unless that is / or home (design D8), or in WSL all of a Windows user's, or where Windows
    itself is: desktop programs start others there."""
    here = Path.cwd()
    if platform.SYSTEM == "windows" and here.is_relative_to(os.environ.get("SYSTEMROOT") or "C:\\Windows"):
        return []
    return [] if here in (Path(here.anchor), Path.home()) or is_too_wide(here) else [here]
