"""Which names below a writable directory a confined process may read and not change: what git, shells, editors and
agents obey. Which names these are, git's own aside, is told from outside.

What a command can make must not use up the protection of what was there before it: repositories are counted apart from
all other names, and of each kind those come first that were found first.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from goat_mcp.commands.sandbox.existing_paths import ExistingPaths, Found
from goat_mcp.commands.sandbox.git_paths import ProtectedPaths, directories_of, is_bare_repository, protected_in
from goat_mcp.commands.sandbox.watched_folder import MERCURIAL, entries_of
from goat_mcp.files.workspace.protected import GIT

_ABSENT_AT_TOP = (".mcp.json", ".claude", ".vscode", "goat-mcp.yaml")
"""The few of the protected names that are not to be made either: agents and editors obey them at the next start."""
_NOT_ENTERED = frozenset(
    {"node_modules", ".venv", "venv", "site-packages", "__pycache__", "target", "dist", ".tox", ".cache", ".svn"}
)
_MAX_DEPTH = 8
_MAX_GIT_MOUNTS = 280
_MAX_OTHER_MOUNTS = 120
"""With the directories that lead there. Each takes up to two open files, of which many systems allow 1,024."""
_SCAN_S = 1.0
_REST_FACTOR = 20
"""A scan that took 1 ms is good for 20 ms: never more than a twentieth of the time is spent on scanning."""


class ProtectedSearch:
    """Looks for them. `is_protected` judges a path below the directory, in the words of `R-FILE-9`. Blocking; for any
    thread."""

    def __init__(
        self, is_protected: Callable[[str], bool], before: ExistingPaths | None = None, *, scan_s: float = _SCAN_S
    ) -> None:
        self._is_protected = is_protected
        self._before = before or ExistingPaths()
        self._scan_s = scan_s
        self._known: dict[Path, tuple[float, Found, bool]] = {}
        self._lock = threading.Lock()

    def below(self, directory: Path) -> ProtectedPaths:
        """What there is below one directory, as of a moment ago where looking takes long."""
        return self._found(directory, self._walk, is_workspace=True)

    def in_git(self, directory: Path) -> ProtectedPaths:
        """What to protect in one git directory, with those of its submodules and worktrees."""
        return self._found(directory, _walk_git, is_workspace=False)

    def _found(
        self, top: Path, walk: Callable[[Path, float], tuple[Found, bool]], *, is_workspace: bool
    ) -> ProtectedPaths:
        with self._lock:
            good_until_s, known, is_complete = self._known.get(top, (0.0, Found(), True))
            now_s = time.monotonic()
            if now_s >= good_until_s:
                new, is_complete = walk(top, now_s + self._scan_s)
                known = self._before.below(top).with_more(new.git, new.others)
                self._before.keep(top, known)
                took_s = time.monotonic() - now_s
                self._known[top] = (time.monotonic() + _REST_FACTOR * took_s, known, is_complete)
            # What is in each repository is looked at anew: a rebase that somebody has begun since is theirs.
            found = _protection(top, known, is_workspace=is_workspace)
            if not is_complete:
                found.missed.append(f"looking through {top} takes more than {self._scan_s:g} s")
            return found

    def _walk(self, top: Path, until_s: float) -> tuple[Found, bool]:
        """What is there now, near ones first, and whether there was time to see it all."""
        git: list[Path] = []
        others: list[Path] = []
        waiting: deque[tuple[str, int]] = deque([("", 0)])
        while waiting:
            below, depth = waiting.popleft()
            entries = entries_of(top / below)
            if is_bare_repository({entry.name for entry in entries}):
                git += directories_of(top / below)
            for entry in entries:
                if time.monotonic() > until_s:
                    return Found(tuple(git), tuple(others)), False
                relative = f"{below}/{entry.name}" if below else entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.is_symlink():
                    continue  # nothing can be mounted on a link, and what it leads to is not below
                if entry.name == GIT:
                    git += directories_of(top / relative) if is_folder else [top / relative]
                elif entry.name == MERCURIAL and is_folder:
                    git.append(top / relative)
                elif self._is_protected(f"{relative}/x" if is_folder else relative) or (
                    entry.name in _ABSENT_AT_TOP and _may_be_placeholder(top / relative)
                ):
                    others.append(top / relative)
                elif is_folder and entry.name not in _NOT_ENTERED and depth < _MAX_DEPTH:
                    waiting.append((relative, depth + 1))
        return Found(tuple(git), tuple(others)), True


def _walk_git(top: Path, until_s: float) -> tuple[Found, bool]:
    return Found(git=tuple(directories_of(top))), True


def _protection(top: Path, known: Found, *, is_workspace: bool) -> ProtectedPaths:
    found = ProtectedPaths()
    if is_workspace and os.access(top, os.W_OK):  # nobody starts an editor in a git directory
        found.absent.extend(top / name for name in _ABSENT_AT_TOP if not os.path.lexists(top / name))
    # There is one of each of these: a command cannot make more of them, and nothing it makes comes before them.
    git = [path for path in (top, top / GIT) if path in known.git]
    obeyed = [path for name in _ABSENT_AT_TOP if (path := top / name) in known.others]
    _add_all(top, map(protected_in, dict.fromkeys((*git, *known.git))), _MAX_GIT_MOUNTS, "repositories", found)
    _add_all(top, map(_protected_name, dict.fromkeys((*obeyed, *known.others))), _MAX_OTHER_MOUNTS, "names", found)
    return found


def _protected_name(path: Path) -> ProtectedPaths:
    if _may_be_placeholder(path):
        return ProtectedPaths(absent=[path])
    return ProtectedPaths(read_only=[path])


def _may_be_placeholder(path: Path) -> bool:
    """Most likely another command's, and gone a moment later: what is mounted by then cannot be. To cover an empty
    directory keeps it as well, whoever made it."""
    return path.name in _ABSENT_AT_TOP and path.is_dir() and not entries_of(path)


def _add_all(top: Path, each: Iterable[ProtectedPaths], room: int, what: str, found: ProtectedPaths) -> None:
    """Add what there is room for, with the directories that lead there, which have to be mounted too."""
    mounted: set[Path] = set()
    for more in each:
        new = {way for path in more.mounted for way in _ways(top, path) if way not in mounted}
        if len(new) > room:
            found.missed.append(f"there are too many {what} below {top}")
            return
        room -= len(new)
        mounted |= new
        found.add(more)


def _ways(top: Path, path: Path) -> Iterator[Path]:
    while path not in (top, path.parent):
        yield path
        path = path.parent
