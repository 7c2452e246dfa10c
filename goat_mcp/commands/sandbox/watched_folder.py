"""A git directory in which a command may make files: which names in it git would obey, and which of them are new."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.files.workspace.protected import GIT, LISTS, RUN_BY_GIT, commit_needs

MERCURIAL = ".hg"
COVERED = ("hooks", "modules")
"""An empty directory of these names runs nothing: it may be what covers the name for another command."""
_MERCURIAL_OBEYS = frozenset({"hgrc", "hgrc-not-shared", "sharedpath"})
_COMMON_OF_A_WORKTREE = "../.."


@dataclass(frozen=True)
class WatchedFolder:
    """`known`: what `obeyed_names` gave before the command. Anything else in `path` afterwards was planted."""

    path: Path
    known: frozenset[str] = frozenset()

    def new_names(self) -> list[str]:
        return [name for name in obeyed_names(self.path) if name not in self.known]


def obeyed_names(folder: Path) -> Iterator[str]:
    """The names in a git directory, or below it as `info/attributes`, that no commit needs.

    Of a bare repository only the best known: other directories in it may be anything, worktrees for example.
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
                if not _is_of_git_worktree_add(folder / name / inner.name):
                    yield f"{name}/{inner.name}"
        elif name in COVERED and is_folder and not entries_of(folder / name):
            continue
        elif name.lower() in RUN_BY_GIT or (is_only_gits and not commit_needs((name,))):
            yield name
    for name in ("alternates", "http-alternates"):
        if os.path.lexists(folder / "objects/info" / name):
            yield f"objects/info/{name}"


def _is_of_git_worktree_add(folder: Path) -> bool:
    """Whether a worktree's directory leads to the repository it lies in, and holds nothing else that git obeys."""
    try:
        common = (folder / "commondir").read_text("utf-8", "surrogateescape")
    except OSError:
        return False
    plain = {"commondir", "gitdir"}
    return common.rstrip("\n") == _COMMON_OF_A_WORKTREE and plain.issuperset(obeyed_names(folder))


def entries_of(folder: Path) -> list[os.DirEntry[str]]:
    """What lies in a directory; nothing if that cannot be found out."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
