"""Where the words of a script lead: the paths they stand for, from the directories the script may be in.

Looks at the file system: wildcards are expanded and links followed, as bash and the programs would. Which rule means a
path is not known here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch, translate
from functools import lru_cache
from pathlib import Path
from posixpath import join, normpath

from goat_mcp.search.glob_pattern import BadGlob, expand_braces
from goat_mcp.shell.file_use import FileUse

_MAX_DIRECTORIES = 8
_MAX_ENTRIES = 20_000
_HOME = re.compile(r"~(?=/|\Z)|\$(?:HOME\b|\{HOME\})")
_HERE = re.compile(r"\$(?:PWD\b|\{PWD\})|~\+(?=/|\Z)")
_MAGIC = re.compile(r"[*?\[]")


class NamedPaths:
    """Of one script that begins in `directory`; `changes` are the texts of its `cd`s, in order."""

    def __init__(self, directory: str, changes: Sequence[str]) -> None:
        self._entries_left = _MAX_ENTRIES
        self._real_folder = lru_cache(maxsize=1000)(_real)
        self._directories = [directory]
        current = directory
        for change in changes:
            reached = [join(base, text) for base in (current, *self._directories) for text in _texts(change, base)]
            current = reached[0] if reached else current
            for path in map(normpath, reached):
                if path not in self._directories and len(self._directories) < _MAX_DIRECTORIES:
                    self._directories.append(path)
        self._current = current

    def of(self, text: str) -> Iterator[str]:
        """The paths a word may stand for, as asked for and as they really are. Those need not exist."""
        for base in dict.fromkeys((*self._directories, self._current)):
            for one in _texts(text, base):
                path = join(base, one)
                yield from self._both(path)
                if _MAGIC.search(one):
                    for found in self._expanded(path):
                        yield from self._both(found)

    def below(self, folder: str, use: FileUse) -> Iterator[str]:
        """What lies below a directory, near things first, of at most 20,000 entries for one script."""
        waiting, known = [folder], {os.path.realpath(folder)}
        start = len(folder.rstrip("/")) + 1
        for above in waiting:
            for entry in self._entries(above):
                path = join(above, entry.name)
                is_link = entry.is_symlink()
                is_left_out = any(fnmatch(one, glob) for glob in use.leaves_out for one in (entry.name, path[start:]))
                if is_left_out or (is_link and not use.follows):
                    continue
                if entry.name.startswith(".") and not use.sees_hidden:
                    continue
                real = os.path.realpath(path) if is_link else path
                yield path
                if is_link:
                    yield real
                if entry.is_dir() and real not in known:
                    known.add(real)
                    waiting.append(path)

    def _both(self, path: str) -> Iterator[str]:
        asked = normpath(path)
        yield asked
        folder, name = os.path.split(path.rstrip("/") or "/")
        real = join(self._real_folder(folder), name) if name not in ("", ".", "..") else self._real_folder(path)
        if os.path.islink(real):  # noqa: PTH114 - of a name that is too long `Path` raises
            real = os.path.realpath(real)
        if real != asked:
            yield real

    def _expanded(self, pattern: str) -> list[str]:
        found = ["/"] if pattern.startswith("/") else [""]
        for name in filter(None, pattern.split("/")):
            if not _MAGIC.search(name):
                found = [join(folder, name) for folder in found]
                continue
            fits = re.compile(translate(name)).fullmatch
            shows_hidden = name.startswith((".", "["))
            found = [
                join(folder, entry.name)
                for folder in found
                for entry in self._entries(folder)
                if fits(entry.name) and (shows_hidden or not entry.name.startswith("."))
            ]
        return found

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if self._entries_left <= 0:
                        return
                    self._entries_left -= 1
                    yield entry
        except OSError:
            return


def _real(path: str) -> str:
    return os.path.realpath(path)


def _texts(word: str, base: str) -> list[str]:
    """A word with its braces, home and current directory filled in; nothing where other expansions are left."""
    try:
        if b"\0" in os.fsencode(word):
            return []
    except UnicodeEncodeError:
        return []  # no file has such a name
    text = _HERE.sub(lambda _: base, _HOME.sub(lambda found: _home(found, word), word))
    if "{" not in text or "$" in text:
        return [text]
    try:
        return list(dict.fromkeys((text, *expand_braces(text))))
    except BadGlob:
        return [text]


def _home(found: re.Match[str], word: str) -> str:
    is_tilde_inside = found[0] == "~" and found.start() > 0 and word[found.start() - 1] not in ":="
    return "~" if is_tilde_inside else str(Path.home())
