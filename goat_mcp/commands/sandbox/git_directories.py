"""Git directories: which names in one git would obey, which are new after a command, and what to protect.

Where they lie in a workspace is found by `protected_paths`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from goat_mcp.files.workspace.protected import GIT, LISTS, RUN_BY_GIT, commit_needs

MERCURIAL = ".hg"
COVERED = ("hooks", "modules")
"""An empty directory with such a name runs nothing: it may be the placeholder of another command."""
_MERCURIAL_OBEYS = frozenset({"hgrc", "hgrc-not-shared", "sharedpath"})
_COMMON_OF_A_WORKTREE = "../.."


@dataclass(frozen=True)
class WatchedFolder:
    """A git directory in which a command may make files. `known`: its obeyed names before the command. Any other one
    afterwards was planted."""

    path: Path
    known: frozenset[str] = frozenset()

    def new_names(self) -> list[str]:
        return [name for name in obeyed_names(self.path) if name not in self.known]


def obeyed_names(folder: Path) -> Iterator[str]:
    """The names in a git directory, or below it as `info/attributes`, that no commit needs.

    Of a bare repository only the best known ones: other directories in it may be anything, such as worktrees.
    """
    if folder.name == MERCURIAL:
        yield from (entry.name for entry in entries_of(folder) if entry.name.lower() in _MERCURIAL_OBEYS)
        return
    is_only_gits = GIT in folder.parts or folder.parent.name == "worktrees"
    for entry in entries_of(folder):
        name, is_folder = entry.name, entry.is_dir(follow_symlinks=False)
        if name in LISTS and is_folder:
            for inner in entries_of(folder / name):
                if not commit_needs((name, inner.name)):
                    yield f"{name}/{inner.name}"
        elif name == "worktrees" and is_folder:
            for inner in entries_of(folder / name):
                if not _is_plain_worktree(folder / name / inner.name):
                    yield f"{name}/{inner.name}"
        elif name in COVERED and is_folder and not entries_of(folder / name):
            continue
        elif name.lower() in RUN_BY_GIT or (is_only_gits and not commit_needs((name,))):
            yield name
    for name in ("alternates", "http-alternates"):
        if os.path.lexists(folder / "objects/info" / name):
            yield f"objects/info/{name}"


def _is_plain_worktree(folder: Path) -> bool:
    """Whether a worktree's directory points to the repository it lies in, and holds nothing else that git obeys."""
    try:
        common = (folder / "commondir").read_text("utf-8", "surrogateescape")
    except OSError:
        return False
    plain = {"commondir", "gitdir"}
    return common.rstrip("\n") == _COMMON_OF_A_WORKTREE and plain.issuperset(obeyed_names(folder))


def entries_of(folder: Path | str) -> list[os.DirEntry[str]]:
    """The entries of a directory; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


_BARE = frozenset({"HEAD", "objects", "refs"})
_MODULES = "modules"
_MAX_MODULE_DEPTH = 5
_MAX_NAMES = 60
"""In one git directory. Git itself makes about ten."""


@dataclass
class ProtectedPaths:
    """What was found below some directories. The fields mean the same as those of `Bounds`."""

    pinned: list[Path] = field(default_factory=list[Path])
    read_only: list[Path] = field(default_factory=list[Path])
    absent: list[Path] = field(default_factory=list[Path])
    watched: list[WatchedFolder] = field(default_factory=list[WatchedFolder])
    missed: list[str] = field(default_factory=list[str])
    """Why something may not be protected, in words."""

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
    """A git directory and those in it: of its worktrees and submodules, and the folders that hold these."""
    yield git
    if depth < _MAX_MODULE_DEPTH:
        for name in _folders(git / "worktrees"):
            yield from directories_of(git / "worktrees" / name, depth + 1)
        yield from _modules(git / _MODULES, depth)


def _modules(folder: Path, depth: int) -> Iterator[Path]:
    """A submodule's name is its path, so its git directory may lie deeper."""
    for name in _folders(folder):
        below = folder / name
        if (below / "HEAD").exists():
            yield from directories_of(below, depth + 1)
        elif depth < _MAX_MODULE_DEPTH:
            yield below
            yield from _modules(below, depth + 1)


def protected_in(path: Path) -> ProtectedPaths:
    """What to protect of a git directory, of Mercurial's, or of a file `.git`."""
    found = ProtectedPaths()
    if not path.is_dir():
        found.read_only.append(path)
    elif path.name in (GIT, MERCURIAL) or path.parent.name == "worktrees" or os.path.lexists(path / "HEAD"):
        _add_repository(path, found)
    elif _MODULES in path.parts:
        found.read_only.append(path)  # only holds submodules; those are mounted on top
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
    # Git clones a submodule into `modules`, and would take a directory there for the clone, with its hooks.
    if folder.name != MERCURIAL and folder.parent.name != "worktrees" and os.access(folder, os.W_OK):
        covered = [name for name in COVERED if name not in obeyed and not (folder / name).is_symlink()]
        found.absent.extend(folder / name for name in covered)
        known.update(covered)  # one that is there afterwards was made by somebody else
    found.watched.append(WatchedFolder(folder, frozenset(known)))


def _folders(folder: Path) -> list[str]:
    return [entry.name for entry in entries_of(folder) if entry.is_dir(follow_symlinks=False)]
