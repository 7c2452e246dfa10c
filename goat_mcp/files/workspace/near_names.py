"""Which path was probably meant by one that does not exist. Looks below one root only, at few entries."""

from __future__ import annotations

import difflib
import os
import unicodedata
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from goat_mcp.files.workspace.beneath import Beneath, Location
from goat_mcp.files.workspace.roots import DIRECTORY_FLAGS, NO_FOLLOW, Names, is_kernel_path, split_names
from goat_mcp.files.workspace.temp_files import is_temp_name

MAX_NEAR = 3
MAX_ENTRIES = 2000
_LIKENESS = 0.6
_NOT_LOOKED_INTO = frozenset({".git", ".hg", ".svn", ".jj", ".sl", "node_modules", "__pycache__", ".venv"})


def near_paths(beneath: Beneath, location: Location) -> list[str]:
    """Up to three existing paths: names like the missing one in its folder, then the same name elsewhere."""
    found: dict[str, None] = {}
    first, *rest = location.missing
    in_folder = [name for name, _ in _entries(location.parent_fd, MAX_ENTRIES)]
    for name in _like(first, in_folder):
        if not rest or beneath.exists(location.root, _below_root(location, (name, *rest))):
            found[str(location.parent.joinpath(name, *rest))] = None
    budget = MAX_ENTRIES
    for top in dict.fromkeys((location.parent, location.root.real)):
        if len(found) >= MAX_NEAR or budget <= 0:
            break
        for path, seen in _named(beneath, location, top, location.missing[-1], budget):
            budget -= seen
            if path is not None:
                found[str(path)] = None
    return list(found)[:MAX_NEAR]


def _like(name: str, names: list[str]) -> list[str]:
    by_key: dict[str, list[str]] = {}
    for other in names:
        by_key.setdefault(_key(other), []).append(other)
    return [
        other
        for key in difflib.get_close_matches(_key(name), by_key, n=MAX_NEAR, cutoff=_LIKENESS)
        for other in by_key[key]
    ]


def _key(name: str) -> str:
    """Names that look alike are equal: case, composed accents, the unusual blanks of screenshots."""
    return unicodedata.normalize("NFKC", name).casefold()


def _below_root(location: Location, names: Names) -> Names:
    return (*split_names(location.parent.relative_to(location.root.real).as_posix()), *names)


def _named(
    beneath: Beneath, location: Location, top: Path, name: str, budget: int
) -> Iterator[tuple[Path | None, int]]:
    """Files called `name` below `top`, nearest first; with each step the number of entries looked at."""
    wanted = _key(name)
    waiting = deque([top])
    while waiting and budget > 0:
        folder = waiting.popleft()
        with suppress(OSError):
            below = split_names(folder.relative_to(location.root.real).as_posix())
            fd, _ = beneath.open(location.root, below, DIRECTORY_FLAGS | NO_FOLLOW)
            try:
                entries = list(_entries(fd, budget))
            finally:
                os.close(fd)
            budget -= len(entries)
            yield None, len(entries)
            for entry, is_folder in sorted(entries):
                path = folder / entry
                if is_folder and entry not in _NOT_LOOKED_INTO and not is_kernel_path(split_names(path.as_posix())):
                    waiting.append(path)
                elif not is_folder and _key(entry) == wanted:
                    yield path, 0


def _entries(dir_fd: int, most: int) -> Iterator[tuple[str, bool]]:
    """At most `most` names in an open directory, each with whether it is a directory; links count as files."""
    with suppress(OSError):
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            with os.scandir(fd) as listing:
                for _, entry in zip(range(most), listing, strict=False):
                    if _is_plain(entry.name) and not is_temp_name(entry.name):
                        yield entry.name, entry.is_dir(follow_symlinks=False)
        finally:
            os.close(fd)


def _is_plain(name: str) -> bool:
    """Letters, signs and blanks. A name with controls or direction marks is no help, and may be there to mislead."""
    return all(char.isprintable() or unicodedata.category(char) == "Zs" for char in name)
