"""The one judge of paths whose change would let a later program run something or grant itself rights (R-FILE-9, 9b).

File tools, commands and the sandbox all ask it. The names are in `protected_names`, those of git in `git_state`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from goat_mcp.files.workspace.git_state import GIT, OF_A_GIT_DIRECTORY, commit_needs
from goat_mcp.files.workspace.protected_names import NAMES, NOTES

_IGNORED_BY_SOME = dict.fromkeys((*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))
"""Characters that HFS+ leaves out of names."""


def protected_reason(path: str, *, root: str = "", commits: bool = False) -> str | None:
    """Why a change of this path always needs a person's approval; None if it does not.

    Args:
        path: what is to be changed, absolute or below the workspace.
        root: the directory of the workspace that it lies in. Names above it protect nothing: a workspace may lie in
            `~/.claude/worktrees`.
        commits: leave out what a commit needs of `.git`. File tools have no business there; commands do.
    """
    parts, first = _parts(path), len(_parts(root)) if root else 0
    names = [_folded(part) for part in parts]
    for index in range(first, len(parts)):
        if names[index] == GIT and not (commits and commit_needs(parts[index + 1 :])):
            return "git runs or obeys it"
        if (program := _obeying(names, index)) and not _is_note(names[index - 1 :]):
            return "it is goat-mcp's own configuration" if program == "goat-mcp" else f"{program} obeys it"
    return None


def git_directory_reason(path: str) -> str | None:
    """Why a write of this path makes or changes a bare repository, whose configuration git obeys for whoever enters
    the directory; None if it does not. Looks at the file system.

    A file `HEAD` is what every git directory needs: so a write of one counts by itself, whatever else is there yet.
    """
    parts = _parts(path)
    if not parts or any(_folded(part) == GIT for part in parts):
        return None
    if _folded(parts[-1]) == "head":
        return "it may make a git directory, which git obeys"
    for index in range(len(parts) - 1, 0, -1):
        name = _folded(parts[index])
        if name not in OF_A_GIT_DIRECTORY:
            continue
        folder = "/".join(parts[:index]) or "/"
        there = {one for one in ("HEAD", "objects", "refs", "commondir") if os.path.lexists(f"{folder}/{one}")}
        if "HEAD" in there and ({"objects", "refs"} <= there | {name} or "commondir" in there | {name}):
            return f"{folder} is or becomes a git directory, which git obeys"
    return None


def _parts(path: str) -> list[str]:
    text = path if os.sep == "/" else path.replace(os.sep, "/")
    absolute = [""] if text.startswith("/") else []
    return [*absolute, *(part for part in text.split("/") if part not in ("", "."))]


@lru_cache(maxsize=4096)
def _folded(name: str) -> str:
    """A name as the least exact of file systems compares it: `.GIT`, `.git.` and `git~1` are `.git` on some."""
    folded = name.lower() if name.isascii() else name.translate(_IGNORED_BY_SOME).casefold()
    folded = folded.rstrip(" .")
    return GIT if folded == "git~1" else folded


def _obeying(names: list[str], index: int) -> str:
    """The program that obeys the name at `index`, or all that is below it; empty if there is none."""
    is_last = index == len(names) - 1
    for entry in _table().entries(names[index]):
        above = len(entry.above)
        if (is_last or entry.is_folder) and tuple(names[max(0, index - above) : index]) == entry.above:
            return entry.program
    return ""


def _is_note(names: list[str]) -> bool:
    """Whether these parts of a path are those of a note of the user's."""
    return tuple(names[:-1]) == NOTES and names[-1].endswith(".md")


class _Entry(NamedTuple):
    above: tuple[str, ...]
    prefix: str
    suffix: str
    is_folder: bool
    program: str


class _Table:
    """`NAMES`, ready to be searched."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._exact: dict[str, list[_Entry]] = {}
        self._wild: list[_Entry] = []
        for text, program in names.items():
            *above, last = text.removesuffix("/").split("/")
            prefix, star, suffix = last.partition("*")
            entry = _Entry(tuple(above), prefix, suffix, text.endswith("/"), program)
            (self._wild if star else self._exact.setdefault(last, [])).append(entry)
        self._prefixes = tuple(entry.prefix for entry in self._wild if entry.prefix)
        self._suffixes = tuple(entry.suffix for entry in self._wild if not entry.prefix)

    def entries(self, name: str) -> Sequence[_Entry]:
        found: Sequence[_Entry] = self._exact.get(name, ())
        if name.startswith(self._prefixes) or name.endswith(self._suffixes):
            wild = [one for one in self._wild if name.startswith(one.prefix) and name.endswith(one.suffix)]
            return [*found, *wild]
        return found


@cache
def _table() -> _Table:
    return _Table(NAMES)
