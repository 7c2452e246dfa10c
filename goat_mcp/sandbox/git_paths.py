"""What git obeys in one of its directories, and which directories it has. Where they lie in a workspace is found
elsewhere."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

GIT = ".git"
_READ_ONLY = ("config", "config.worktree", "commondir", "gitdir")
_WATCHED = ("commondir", "config.worktree")
"""Git obeys these where they are, and fails if a placeholder is there instead. `commondir` names another folder for
the configuration."""
_READ_ONLY_IN_WORKTREE = ("commondir", "gitdir", "config.worktree")
_BARE = frozenset({"HEAD", "objects", "refs", "config"})
_MODULES = "modules"
_MAX_MODULE_DEPTH = 5


@dataclass
class ProtectedPaths:
    """What was found below some directories. The fields mean what those of `Bounds` do."""

    pinned: list[Path] = field(default_factory=list[Path])
    read_only: list[Path] = field(default_factory=list[Path])
    absent: list[Path] = field(default_factory=list[Path])
    watched: list[Path] = field(default_factory=list[Path])
    missed: list[str] = field(default_factory=list[str])
    """Why some of it may not be protected, in words."""

    def add(self, more: ProtectedPaths) -> None:
        self.pinned += more.pinned
        self.read_only += more.read_only
        self.absent += more.absent
        self.watched += more.watched
        self.missed += more.missed

    @property
    def mounted(self) -> list[Path]:
        return [*self.pinned, *self.read_only, *self.absent]


def is_bare_repository(names: Collection[str]) -> bool:
    """Whether a directory with these entries is a git directory, whatever its name."""
    return _BARE.issubset(names)


def directories_of(git: Path, depth: int = 0) -> Iterator[Path]:
    """A git directory and those in it: of its worktrees and submodules, and the folders that these lie in."""
    yield git
    for name in _folders(git / "worktrees"):
        yield git / "worktrees" / name
    if depth < _MAX_MODULE_DEPTH:
        yield from _modules(git / _MODULES, depth)


def _modules(folder: Path, depth: int) -> Iterator[Path]:
    """Submodules have the path they lie at for a name, so that their git directories may lie deeper."""
    for name in _folders(folder):
        below = folder / name
        if (below / "HEAD").exists():
            yield from directories_of(below, depth + 1)
        elif depth < _MAX_MODULE_DEPTH:
            yield below
            yield from _modules(below, depth + 1)


def protected_in(path: Path) -> ProtectedPaths:
    """What to protect of one of these, or of a file `.git`."""
    found = ProtectedPaths()
    entries = {entry.name: entry for entry in entries_of(path)}
    if not path.is_dir():
        found.read_only.append(path)
    elif path.parent.name == "worktrees" and "gitdir" in entries:
        there = {name for name, entry in entries.items() if not entry.is_symlink()}
        found.read_only.extend(path / name for name in _READ_ONLY_IN_WORKTREE if name in there)
        found.watched.extend(path / name for name in ("config.worktree",) if name not in entries)
    elif path.name == GIT or "HEAD" in entries:
        _add_git(path, entries, found)
    elif _MODULES in path.parts:
        found.read_only.append(path)  # only leads to submodules; those are mounted on top
    return found


def _add_git(git: Path, entries: dict[str, os.DirEntry[str]], found: ProtectedPaths) -> None:
    found.pinned.append(git)
    found.read_only.extend(git / n for n in _READ_ONLY if n in entries and not entries[n].is_symlink())
    attributes = git / "info/attributes"
    if attributes.is_file() and not attributes.is_symlink():
        found.read_only.append(attributes)
    # Git clones a submodule into `modules`, and takes what lies there already for its clone, with its hooks.
    for name in ("hooks", _MODULES):
        if name not in entries:
            if os.access(git, os.W_OK):
                found.absent.append(git / name)
        elif not entries[name].is_symlink():
            is_empty = entries[name].is_dir() and not entries_of(git / name)
            (found.absent if is_empty else found.read_only).append(git / name)
    found.watched.extend(git / name for name in _WATCHED if name not in entries)


def entries_of(folder: Path) -> Iterable[os.DirEntry[str]]:
    """What lies in a folder; nothing where that cannot be told."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return ()


def _folders(folder: Path) -> list[str]:
    return [entry.name for entry in entries_of(folder) if entry.is_dir(follow_symlinks=False)]
