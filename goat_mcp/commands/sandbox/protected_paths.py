"""Which names below a writable directory a confined process may not change: what git, shells, editors and agents obey;
and which files the user's rules hide or protect.

A command must not be able to use up the protection of older paths. So repositories are counted apart from all other
names, and of each kind the paths found first come first, also those found by earlier processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from goat_mcp.commands.sandbox.git_directories import (
    MERCURIAL,
    ProtectedPaths,
    directories_of,
    entries_of,
    is_bare_repository,
    protected_in,
)
from goat_mcp.files.workspace.protected import GIT

_ENTERED_LAST = frozenset({"node_modules", ".venv", "venv", "site-packages", "__pycache__", ".git", "target", "dist"})
_MAX_FOUND = 200
_HIDDEN_SCAN_S = 0.1
_HIDDEN_REST_FACTOR = 10
"""A scan that took 1 ms is good for 10 ms."""


class HiddenSearch:
    """Finds files that the user's rules let no command read, or change. Blocking.

    `hides` judges an absolute path; `exactly` are paths that rules name without a wildcard.

    Nothing is looked at while `hides_some` says that `hides` hides nothing.

    Paths near the top are found first: at most 200, in at most 100 ms. A link cannot be hidden, since nothing can be
    mounted on it; its target is.
    """

    def __init__(
        self,
        hides: Callable[[str], bool],
        exactly: Callable[[], Sequence[Path]],
        hides_some: Callable[[], bool] = lambda: True,
        *,
        scan_s: float = _HIDDEN_SCAN_S,
    ) -> None:
        self._hides = hides
        self._exactly = exactly
        self._hides_some = hides_some
        self._scan_s = scan_s
        self._known: dict[tuple[Path, ...], tuple[float, tuple[Path, ...]]] = {}

    def below(self, directories: Sequence[Path]) -> tuple[Path, ...]:
        """Real paths of what exists, from a moment ago if the search takes long."""
        if not self._hides_some():
            return ()
        key, now_s = tuple(directories), time.monotonic()
        good_until_s, found = self._known.get(key, (0.0, ()))
        if now_s >= good_until_s:
            found = self._scan(directories, now_s + self._scan_s)
            took_s = time.monotonic() - now_s
            self._known[key] = (time.monotonic() + _HIDDEN_REST_FACTOR * took_s, found)
        named = (Path(os.path.realpath(path)) for path in self._exactly() if os.path.exists(path))  # noqa: PTH110  # `Path` raises for what may not be looked at
        return tuple(dict.fromkeys((*named, *found)))

    def _scan(self, directories: Sequence[Path], until_s: float) -> tuple[Path, ...]:
        found: list[Path] = []
        waiting, last = deque(map(str, directories)), deque[str]()
        while waiting or last:
            folder = waiting.popleft() if waiting else last.popleft()
            for entry in entries_of(folder):
                if len(found) >= _MAX_FOUND or time.monotonic() > until_s:
                    return tuple(found)
                if self._hides(entry.path):
                    found.append(Path(os.path.realpath(entry.path)))
                elif entry.is_dir(follow_symlinks=False):
                    (last if entry.name in _ENTERED_LAST else waiting).append(entry.path)
        return tuple(found)


_FILE = "found"
"""Not `.json`: the notes of placeholders in the same folder end in that."""
_MAX_KEPT = 500


@dataclass(frozen=True)
class KnownPaths:
    """Paths below a directory, the longest known first. `git`: git directories and the folders that lead to them;
    `others`: what editors, shells and agents obey."""

    git: tuple[Path, ...] = ()
    others: tuple[Path, ...] = ()

    def with_more(self, git: Iterable[Path], others: Iterable[Path]) -> KnownPaths:
        return KnownPaths(tuple(dict.fromkeys((*self.git, *git))), tuple(dict.fromkeys((*self.others, *others))))

    def still_there(self) -> KnownPaths:
        return KnownPaths(*(tuple(islice(filter(_is_there, paths), _MAX_KEPT)) for paths in (self.git, self.others)))


class ExistingPaths:
    """Protected paths found in earlier searches. Blocking; for one thread at a time.

    Args:
        folder: a private one for the file. None: for the time of this process only.
    """

    def __init__(self, folder: Callable[[], Path] | None = None) -> None:
        self._folder = folder
        self._known: dict[Path, KnownPaths] = {}

    def below(self, top: Path) -> KnownPaths:
        """The paths found below `top` that still exist."""
        if top not in self._known:
            self._known[top] = self._read().get(str(top), KnownPaths())
        return self._known[top].still_there()

    def store(self, top: Path, found: KnownPaths) -> None:
        """Replace what is known. If it cannot be written, only this process knows it."""
        found = found.still_there()
        if found == self._known.get(top):
            return
        self._known[top] = found
        if self._folder is None:
            return
        # Another process may have found more meanwhile; a directory that is gone needs no entry.
        kept = {name: one for name, one in self._read().items() if Path(name).is_dir()}
        there = kept.get(str(top), KnownPaths())
        kept[str(top)] = found.with_more(there.git, there.others).still_there()
        with contextlib.suppress(OSError):
            self._write(self._folder() / _FILE, kept)

    def _read(self) -> dict[str, KnownPaths]:
        """A damaged file counts as empty: what exists is then found again."""
        if self._folder is None:
            return {}
        try:
            data: dict[str, Any] = json.loads((self._folder() / _FILE).read_bytes())
            return {
                top: KnownPaths(tuple(map(Path, one["git"])), tuple(map(Path, one["others"])))
                for top, one in data.items()
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def _write(self, file: Path, kept: Mapping[str, KnownPaths]) -> None:
        data = {top: {"git": [*map(str, one.git)], "others": [*map(str, one.others)]} for top, one in kept.items()}
        new = file.with_name(f"{file.name}.{secrets.token_hex(4)}.new")
        # ASCII, with escapes for the bytes of names that are no UTF-8.
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as text:
            json.dump(data, text)
        new.replace(file)


def _is_there(path: Path) -> bool:
    """At its own path: not behind a link."""
    return os.path.lexists(path) and os.path.realpath(path) == str(path)


_ABSENT_AT_TOP = (".mcp.json", ".claude", ".vscode", "goat-mcp.yaml")
"""The few protected names that must not be made either: agents and editors obey them at the next start."""
_NOT_ENTERED = frozenset(
    {"node_modules", ".venv", "venv", "site-packages", "__pycache__", "target", "dist", ".tox", ".cache", ".svn"}
)
_MAX_DEPTH = 8
_MAX_GIT_MOUNTS = 280
_MAX_OTHER_MOUNTS = 120
"""With the directories that lead there. Each needs up to two open files, of which many systems allow 1,024."""
_SCAN_S = 1.0
_REST_FACTOR = 20
"""A scan that took 1 ms is good for 20 ms: never more than a twentieth of the time is spent on scanning."""


class ProtectedSearch:
    """Finds them. `is_protected` judges a path relative to the directory (R-FILE-9). Blocking; for any thread."""

    def __init__(
        self, is_protected: Callable[[str], bool], before: ExistingPaths | None = None, *, scan_s: float = _SCAN_S
    ) -> None:
        self._is_protected = is_protected
        self._before = before or ExistingPaths()
        self._scan_s = scan_s
        self._known: dict[Path, tuple[float, KnownPaths, bool]] = {}
        self._lock = threading.Lock()

    def below(self, directory: Path) -> ProtectedPaths:
        """What exists below one directory, from a moment ago if the search takes long."""
        return self._found(directory, self._walk, is_workspace=True)

    def in_git(self, directory: Path) -> ProtectedPaths:
        """What to protect in one git directory, with those of its submodules and worktrees."""
        return self._found(directory, _walk_git, is_workspace=False)

    def _found(
        self, top: Path, walk: Callable[[Path, float], tuple[KnownPaths, bool]], *, is_workspace: bool
    ) -> ProtectedPaths:
        with self._lock:
            good_until_s, known, is_complete = self._known.get(top, (0.0, KnownPaths(), True))
            now_s = time.monotonic()
            if now_s >= good_until_s:
                new, is_complete = walk(top, now_s + self._scan_s)
                known = self._before.below(top).with_more(new.git, new.others)
                self._before.store(top, known)
                took_s = time.monotonic() - now_s
                self._known[top] = (time.monotonic() + _REST_FACTOR * took_s, known, is_complete)
            # The content of each repository is read again: a rebase that somebody has begun since is theirs.
            found = _protection(top, known, is_workspace=is_workspace)
            if not is_complete:
                found.missed.append(f"looking through {top} takes more than {self._scan_s:g} s")
            return found

    def _walk(self, top: Path, until_s: float) -> tuple[KnownPaths, bool]:
        """What exists now, near paths first, and whether the time was enough for all."""
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
                    return KnownPaths(tuple(git), tuple(others)), False
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
        return KnownPaths(tuple(git), tuple(others)), True


def _walk_git(top: Path, until_s: float) -> tuple[KnownPaths, bool]:
    return KnownPaths(git=tuple(directories_of(top))), True


def _protection(top: Path, known: KnownPaths, *, is_workspace: bool) -> ProtectedPaths:
    found = ProtectedPaths()
    if is_workspace and os.access(top, os.W_OK):  # nobody starts an editor in a git directory
        found.absent.extend(top / name for name in _ABSENT_AT_TOP if not os.path.lexists(top / name))
    # There is one of each: a command cannot make more of them, and nothing it makes comes before them.
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
    """Probably another command's, and gone a moment later, when it cannot be mounted any more. Covering an empty
    directory protects it as well, whoever made it."""
    return path.name in _ABSENT_AT_TOP and path.is_dir() and not entries_of(path)


def _add_all(top: Path, each: Iterable[ProtectedPaths], room: int, what: str, found: ProtectedPaths) -> None:
    """Add as many as there is room for, with the directories that lead there, which are mounted too."""
    mounted: set[Path] = set()
    for more in each:
        new = {step for path in more.mounted for step in _steps(top, path) if step not in mounted}
        if len(new) > room:
            found.missed.append(f"there are too many {what} below {top}")
            return
        room -= len(new)
        mounted |= new
        found.add(more)


def _steps(top: Path, path: Path) -> Iterator[Path]:
    while path not in (top, path.parent):
        yield path
        path = path.parent
