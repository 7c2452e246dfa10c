"""What git obeys in one of its directories, and which directories it has. Where they lie in a workspace is found
elsewhere."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from goat_mcp.commands.sandbox.watched_folder import COVERED, MERCURIAL, WatchedFolder, entries_of, obeyed_names
from goat_mcp.files.workspace.protected import GIT, RUN_BY_GIT

_BARE = frozenset({"HEAD", "objects", "refs"})
_MODULES = "modules"
_MAX_MODULE_DEPTH = 5
_MAX_NAMES = 60
"""In one git directory. Git itself makes some ten."""


@dataclass
class ProtectedPaths:
    """What was found below some directories. The fields mean what those of `Bounds` do."""

    pinned: list[Path] = field(default_factory=list[Path])
    read_only: list[Path] = field(default_factory=list[Path])
    absent: list[Path] = field(default_factory=list[Path])
    watched: list[WatchedFolder] = field(default_factory=list[WatchedFolder])
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
    if depth < _MAX_MODULE_DEPTH:
        for name in _folders(git / "worktrees"):
            yield from directories_of(git / "worktrees" / name, depth + 1)
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
    """What to protect of one of these, of Mercurial's directory, or of a file `.git`."""
    found = ProtectedPaths()
    if not path.is_dir():
        found.read_only.append(path)
    elif path.name in (GIT, MERCURIAL) or path.parent.name == "worktrees" or os.path.lexists(path / "HEAD"):
        _add_repository(path, found)
    elif _MODULES in path.parts:
        found.read_only.append(path)  # only leads to submodules; those are mounted on top
    return found


def _add_repository(folder: Path, found: ProtectedPaths) -> None:
    obeyed = sorted(obeyed_names(folder), key=lambda name: (name not in RUN_BY_GIT, name))
    found.pinned.append(folder)
    # Nothing can be mounted on a link. Worktrees have an entry of their own.
    mounted = [name for name in obeyed if not name.startswith("worktrees/") and not (folder / name).is_symlink()]
    found.read_only.extend(folder / name for name in mounted[:_MAX_NAMES])
    if len(mounted) > _MAX_NAMES:
        found.missed.append(f"there are too many files of other programs in {folder}")
    worktrees = (f"worktrees/{entry.name}" for entry in entries_of(folder / "worktrees"))
    known = {*obeyed, *worktrees}
    # Git clones a submodule into `modules`, and takes what lies there already for its clone, with its hooks.
    if folder.name != MERCURIAL and folder.parent.name != "worktrees" and os.access(folder, os.W_OK):
        covered = [name for name in COVERED if name not in obeyed and not (folder / name).is_symlink()]
        found.absent.extend(folder / name for name in covered)
        known.update(covered)  # what is there afterwards, somebody else has made
    found.watched.append(WatchedFolder(folder, frozenset(known)))


def _folders(folder: Path) -> list[str]:
    return [entry.name for entry in entries_of(folder) if entry.is_dir(follow_symlinks=False)]
