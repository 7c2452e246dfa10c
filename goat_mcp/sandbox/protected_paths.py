"""Which names below a writable directory a confined process may read and not change: what git, shells, editors and
agents obey. Which names these are, git's own aside, is told from outside."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

_GIT = ".git"
_READ_ONLY_IN_GIT = ("hooks", "config", "config.worktree", "commondir", "gitdir")
_WATCHED_IN_GIT = ("commondir", "config.worktree")
"""Git obeys these where they are, and fails if a placeholder is there instead. `commondir` names another folder for
the configuration."""
_ABSENT_AT_TOP = (".mcp.json", ".claude", ".vscode", "goat-mcp.yaml")
"""The few of the protected names that are not to be made either: agents and editors obey them at the next start."""
_NOT_ENTERED = frozenset(
    {"node_modules", ".venv", "venv", "site-packages", "__pycache__", "target", "dist", ".tox", ".cache", ".hg", ".svn"}
)
_MAX_DEPTH = 8
_MAX_MODULE_DEPTH = 5
_MAX_FOUND = 200
_SCAN_S = 0.05
_REST_FACTOR = 40
"""A scan that took 1 ms is good for 40 ms: never more than a fortieth of the time is spent on scanning."""


@dataclass
class ProtectedPaths:
    """What was found below some directories. The fields mean what those of `Bounds` do."""

    pinned: list[Path] = field(default_factory=list[Path])
    read_only: list[Path] = field(default_factory=list[Path])
    absent: list[Path] = field(default_factory=list[Path])
    watched: list[Path] = field(default_factory=list[Path])
    is_complete: bool = True
    """Whether there was time to look everywhere. What lies near the top is found first."""

    @property
    def count(self) -> int:
        return len(self.pinned) + len(self.read_only) + len(self.absent)


class ProtectedSearch:
    """Looks for them. `is_protected` judges a path below the directory, in the words of `R-FILE-9`. Blocking."""

    def __init__(self, is_protected: Callable[[str], bool], *, scan_s: float = _SCAN_S) -> None:
        self._is_protected = is_protected
        self._scan_s = scan_s
        self._known: dict[Path, tuple[float, ProtectedPaths]] = {}

    def below(self, directory: Path) -> ProtectedPaths:
        """What there is below one directory, as of a moment ago where looking takes long."""
        good_until_s, found = self._known.get(directory, (0.0, None))
        now_s = time.monotonic()
        if found is None or now_s >= good_until_s:
            found = self._scan(directory)
            took_s = time.monotonic() - now_s
            self._known[directory] = (time.monotonic() + _REST_FACTOR * took_s, found)
        return found

    def _scan(self, top: Path) -> ProtectedPaths:
        found = ProtectedPaths()
        until_s = time.monotonic() + self._scan_s
        if os.access(top, os.W_OK):
            found.absent.extend(top / name for name in _ABSENT_AT_TOP if not os.path.lexists(top / name))
        waiting: deque[tuple[str, int]] = deque([("", 0)])
        while waiting:
            if time.monotonic() > until_s or found.count > _MAX_FOUND:
                found.is_complete = False
                break
            below, depth = waiting.popleft()
            for entry in _entries(top / below):
                relative = f"{below}/{entry.name}" if below else entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.is_symlink():
                    continue  # nothing can be mounted on a link, and what it leads to is not below
                if entry.name == _GIT:
                    if is_folder:
                        _add_git(top / relative, found)
                    else:
                        found.read_only.append(top / relative)
                elif is_folder and entry.name in _ABSENT_AT_TOP and not _entries(top / relative):
                    # Most likely the placeholder of another command, and gone a moment later: what is mounted by
                    # then cannot be. To cover an empty directory keeps it as well, whoever made it.
                    found.absent.append(top / relative)
                elif self._is_protected(f"{relative}/x" if is_folder else relative):
                    found.read_only.append(top / relative)
                elif is_folder and entry.name not in _NOT_ENTERED:
                    if depth < _MAX_DEPTH:
                        waiting.append((relative, depth + 1))
                    else:
                        found.is_complete = False
        return found


def git_folder(directory: Path) -> ProtectedPaths:
    """What to protect in one git directory, with those of its submodules and worktrees."""
    found = ProtectedPaths()
    _add_git(directory, found)
    return found


def _add_git(git: Path, found: ProtectedPaths, depth: int = 0) -> None:
    names = {entry.name: entry for entry in _entries(git)}
    found.pinned.append(git)
    found.read_only.extend(
        git / n for n in _READ_ONLY_IN_GIT if n in names and n != "hooks" and not names[n].is_symlink()
    )
    if (git / "info/attributes").is_file() and not (git / "info/attributes").is_symlink():
        found.read_only.append(git / "info/attributes")
    if "hooks" in names:
        if not names["hooks"].is_symlink():
            is_empty = names["hooks"].is_dir() and not _entries(git / "hooks")
            (found.absent if is_empty else found.read_only).append(git / "hooks")
    elif os.access(git, os.W_OK):
        found.absent.append(git / "hooks")
    found.watched.extend(git / name for name in _WATCHED_IN_GIT if name not in names)
    if "worktrees" in names:
        for entry in _folders(git / "worktrees"):
            worktree = git / "worktrees" / entry
            there = {one.name for one in _entries(worktree) if not one.is_symlink()}
            found.read_only.extend(worktree / n for n in ("commondir", "gitdir", "config.worktree") if n in there)
            found.watched.extend(worktree / n for n in ("config.worktree",) if n not in there)
    if "modules" in names and depth < _MAX_MODULE_DEPTH:
        _add_modules(git / "modules", found, depth)


def _add_modules(folder: Path, found: ProtectedPaths, depth: int) -> None:
    """Submodules have the path they lie at for a name, so that their git directories may lie deeper."""
    found.pinned.append(folder)
    for name in _folders(folder):
        below = folder / name
        if (below / "HEAD").exists():
            _add_git(below, found, depth + 1)
        elif depth < _MAX_MODULE_DEPTH:
            _add_modules(below, found, depth + 1)


def _entries(folder: Path) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return ()


def _folders(folder: Path) -> list[str]:
    return [entry.name for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]
