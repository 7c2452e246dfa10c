"""Walking a directory by descriptors: no link is followed, no ignored directory is entered, cycles cannot occur."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from goat_mcp.files.search.glob_pattern import GlobPattern
from goat_mcp.files.search.ignore_files import IGNORE_NAMES, REPOSITORY_EXCLUDE, directories_above, global_excludes
from goat_mcp.files.search.python_engine.ignore_rules import Level, Rules, decide, parse_lines
from goat_mcp.files.search.query import VCS_DIRECTORIES, Query

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC if os.name == "posix" else os.O_RDONLY
_OPEN_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_KINDS = (*IGNORE_NAMES, REPOSITORY_EXCLUDE)


@dataclass
class Walk:
    """Regular files below the current directory, as `(directory descriptor, name, path)`.

    `has_errors` tells that a directory could not be read.
    """

    query: Query
    types: Sequence[str] | None
    real_path: str
    has_errors: bool = False
    _levels: list[Level] = field(default_factory=list[Level])

    def files(self) -> Iterator[tuple[int, str, str]]:
        self._extra = Rules.parse(self.query.path_rules)
        self._everywhere: tuple[Rules | None, ...] = (self._extra,)
        if not self.query.include_ignored:
            excludes = global_excludes()
            self._everywhere = (parse_lines(excludes.read_bytes()) if excludes else None, self._extra)
            self._levels = list(self._levels_above())
        self._fits = _type_matcher(self.types)
        root = os.open(".", _OPEN_DIRECTORY)
        try:
            yield from self._below(root, [])
        finally:
            os.close(root)

    def _below(self, fd: int, names: list[str]) -> Iterator[tuple[int, str, str]]:
        entries = self._entries(fd)
        if not self.query.include_ignored:
            self._levels.append(_level_here(fd, {entry.name for entry in entries}, len(names)))
        try:
            for entry in entries:
                is_directory = entry.is_dir(follow_symlinks=False)
                if entry.name in VCS_DIRECTORIES or not (is_directory or entry.is_file(follow_symlinks=False)):
                    continue
                here = [*names, entry.name]
                if decide(self._levels, self._everywhere, here, is_directory):
                    continue
                if not is_directory:
                    if self._fits(entry.name):
                        yield fd, entry.name, "./" + "/".join(here)
                elif self.query.max_depth is None or len(here) < self.query.max_depth:
                    yield from self._inside(fd, entry.name, here)
        finally:
            if not self.query.include_ignored:
                self._levels.pop()

    def _inside(self, parent: int, name: str, names: list[str]) -> Iterator[tuple[int, str, str]]:
        try:
            fd = os.open(name, _OPEN_DIRECTORY, dir_fd=parent)
        except OSError:
            self.has_errors = True
            return
        try:
            yield from self._below(fd, names)
        finally:
            os.close(fd)

    def _entries(self, fd: int) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(fd) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError:
            self.has_errors = True
            return []

    def _levels_above(self) -> Iterator[Level]:
        here = Path(self.real_path)
        for directory in reversed(list(directories_above(self.real_path))):
            by_kind = tuple(_rules_of(directory / name) for name in _KINDS)
            prefix = here.relative_to(directory).as_posix() + "/"
            yield Level(by_kind, prefix, 0, (directory / ".git").exists())


def open_file(path: str, dir_fd: int | None = None) -> int:
    """Open a file for reading, no link followed at any step. `path` is `./a/b` or one name in `dir_fd`."""
    names = [name for name in path.split("/") if name != "."]
    current = dir_fd
    try:
        for name in names[:-1]:
            following = os.open(name, _OPEN_DIRECTORY, dir_fd=current)
            if current is not None and current != dir_fd:
                os.close(current)
            current = following
        return os.open(names[-1], _OPEN_FILE, dir_fd=current)
    finally:
        if current is not None and current != dir_fd:
            os.close(current)


def _level_here(fd: int, names: set[str], depth: int) -> Level:
    by_kind: list[Rules | None] = []
    for kind in _KINDS:
        rules = None
        if kind.split("/")[0] in names:
            with suppress(OSError):
                rules = _read_rules(open_file(f"./{kind}", fd))
        by_kind.append(rules)
    return Level(tuple(by_kind), "", depth, ".git" in names)


def _rules_of(path: Path) -> Rules | None:
    with suppress(OSError):
        return parse_lines(path.read_bytes())
    return None


def _read_rules(fd: int) -> Rules:
    with open(fd, "rb") as file:
        return parse_lines(file.read())


def _type_matcher(globs: Sequence[str] | None) -> Callable[[str], object]:
    if globs is None:
        return bool
    expression = "|".join(f"(?:{GlobPattern.parse(glob).expression})" for glob in globs)
    return re.compile(expression, re.DOTALL).fullmatch
