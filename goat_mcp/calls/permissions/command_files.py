"""Rules about files, compared with the files that a command names, as far as one can know without running it.

Wildcards are expanded and links followed as bash and the programs would. Only rules that deny or ask count: `Read(...)`
allows no command. If a path cannot be followed exactly, the first rule that could match it counts (R-SHELL-5b). A
sandbox keeps files from what a command starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from posixpath import basename, join, normpath, split
from typing import NamedTuple

from goat_mcp.calls.permissions.rule import Call, Rule
from goat_mcp.calls.permissions.rule_set import WRITES_OF_COMMANDS, RuleList
from goat_mcp.commands.shell.file_use import HERE, NUMBER, TIME, FileDoubt, FileUse
from goat_mcp.files.workspace.directory import lies_in
from goat_mcp.files.workspace.roots import has_other_meaning, is_second_name, split_names

_MAX_DIRECTORIES = 40
_MAX_FOLDERS = 16
_MAX_ENTRIES = 20_000
_MAGIC = re.compile(rf"[*?{NUMBER}{TIME}]")
_WILDCARDS = {"*": ".*", "?": ".", NUMBER: r"-?\d+", TIME: r"[\w:+-]+"}
_OF_A_PROCESS = re.compile(r"/(?:cwd|root|fd|task|map_files)(?=/|\Z)")
_BELOW_DESCRIPTOR = re.compile(r"/dev/(?:fd(?:/|\Z)|std(?:in|out|err)/)")


class UnresolvedPath(Exception):
    """A path cannot be followed as the system would; the reason, for people."""


class NamedPaths:
    """Of one script that begins in `directory`; `changes` are the texts of its `cd`s, `perhaps` words that may be
    directories it goes to."""

    def __init__(self, directory: str, changes: Sequence[str], perhaps: Sequence[str] = ()) -> None:
        self._entries_left = _MAX_ENTRIES
        self._real_folder = lru_cache(maxsize=1000)(_real)
        self.directories = [directory]
        self.is_cut = False
        targets = [*changes, *(text for text in perhaps if _is_folder(join(directory, _at_home(text, directory))))]
        # In whatever order they come.
        for _ in range(min(len(targets), 3)):
            for base in list(self.directories):
                for target in targets:
                    path = join(base, _at_home(target, base))
                    self._add(normpath(path))
                    self._add(self._real_folder(path))
        self.is_cut = self.is_cut or len(changes) > 3

    def _add(self, path: str) -> None:
        if path in self.directories:
            return
        if len(self.directories) >= _MAX_DIRECTORIES:
            self.is_cut = True
        else:
            self.directories.append(path)

    def with_folders(self, words: Sequence[str]) -> list[str]:
        """The directories of the script, and those of the words that are directories.

        Raises `UnresolvedPath`.
        """
        found = [
            path
            for base in self.directories
            for word in words
            if _is_folder(path := normpath(join(base, _at_home(word, base))))
        ]
        if len(found) > _MAX_FOLDERS * len(self.directories):
            raise UnresolvedPath("it names too many directories")
        return list(dict.fromkeys((*self.directories, *found)))

    def of(self, use: FileUse, bases: Sequence[str]) -> Iterator[str]:
        """The paths a word may stand for, as asked for and as they really are. Those need not exist.

        Raises `UnresolvedPath`.
        """
        if not _is_a_name(use.text):
            return
        for base in bases:
            text = _at_home(use.text, base)
            path = join(base, text)
            if base in self.directories or use.writes or use.may_write or _exists(path):
                yield from self._both(path)
            if _MAGIC.search(text) and (use.magic or NUMBER in text or TIME in text):
                for found in self._expanded(path):
                    yield from self._both(found)

    def below(self, folder: str, use: FileUse) -> Iterator[str]:
        """What is below a directory, near things first. Raises `UnresolvedPath` after 20,000 entries of one script."""
        waiting, known = [(folder, os.path.realpath(folder))], {os.path.realpath(folder)}
        start = len(folder.rstrip("/"))
        for above, real_above in waiting:
            for entry in self._entries(above):
                path = join(above, entry.name)
                is_link, is_folder = entry.is_symlink(), entry.is_dir()
                if any(_is_left_out(path[start:], one, is_folder=is_folder) for one in use.leaves_out):
                    continue
                if (is_link and not use.follows) or (entry.name.startswith(".") and not use.sees_hidden):
                    continue
                # Below a link, too, rules are about the real names.
                real = os.path.realpath(path) if is_link else join(real_above, entry.name)
                yield path
                if real != path:
                    yield real
                if is_folder and real not in known:
                    known.add(real)
                    waiting.append((path, real))

    def _both(self, path: str) -> Iterator[str]:
        plain = re.sub(r"/(?:\.?/)+", "/", path)
        asked = normpath(path)
        for one in (plain, asked):
            self._check(one)
        yield asked
        folder, name = os.path.split(path.rstrip("/") or "/")
        real = join(self._real_folder(folder), name) if name not in ("", ".", "..") else self._real_folder(path)
        if os.path.islink(real):  # noqa: PTH114 - of a name that is too long `Path` raises
            real = os.path.realpath(real)
        if real != asked:
            yield real

    def _check(self, path: str) -> None:
        if _BELOW_DESCRIPTOR.match(path):
            raise UnresolvedPath(f"{path} leads to what a process has open")
        if has_other_meaning(names := split_names(path)) or is_second_name(names):
            raise UnresolvedPath(f"{path} is another name of a file; write the path below / that it usually has")
        for found in _OF_A_PROCESS.finditer(path):
            above = path[: found.start()] or "/"
            if above.startswith("/proc/") or f"{self._real_folder(above)}/".startswith("/proc/"):
                raise UnresolvedPath(f"{path} leads to what a process has open")

    def _expanded(self, pattern: str) -> list[str]:
        found = ["/"] if pattern.startswith("/") else [""]
        for name in filter(None, pattern.split("/")):
            if not _MAGIC.search(name):
                found = [join(folder, name) for folder in found]
                continue
            expression = "".join(_WILDCARDS.get(char) or re.escape(char) for char in name)
            fits = re.compile(f"(?s:{expression})").fullmatch
            shows_hidden = name.startswith(".")
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
                    self._entries_left -= 1
                    if self._entries_left < 0:
                        raise UnresolvedPath(
                            f"more than {_MAX_ENTRIES:,} files would have to be looked at; name smaller folders"
                        )
                    yield entry
        except OSError:
            return


def _is_left_out(path: str, pattern: str, *, is_folder: bool) -> bool:
    """`path` begins with a slash; for `pattern` see `FileUse`."""
    if pattern.endswith("/" if not is_folder else "|"):
        return False
    pattern = pattern.rstrip("/|")
    return path == pattern if pattern.startswith("/") else fnmatchcase(path.rpartition("/")[2], pattern)


def _real(path: str) -> str:
    return os.path.realpath(path)


def _is_folder(path: str) -> bool:
    try:
        return os.path.isdir(path)  # noqa: PTH112 - of a name that is too long `Path` raises
    except ValueError:
        return False


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def _is_a_name(word: str) -> bool:
    try:
        return b"\0" not in os.fsencode(word)
    except UnicodeEncodeError:
        return False  # no file has such a name


def _at_home(text: str, base: str) -> str:
    """With the home and the current directory filled in."""
    if text == "~" or text.startswith("~/"):
        text = f"{Path.home()}{text[1:]}"
    elif text == "~+" or text.startswith("~+/"):
        text = f"{base}{text[2:]}"
    return text.replace(HERE, base)


_SHOWN_CHARS = 60
_WAY_OUT = "write each path as it is, or use the tools Read, Grep, Edit and Write"


class FileHit(NamedTuple):
    """`explanation`: which file it is, or what could not be followed, for people."""

    rule: Rule
    explanation: str


def rule_on_files(rules: RuleList, call: Call) -> FileHit | None:
    """The first rule of a list that means a file which a command names, or may mean what cannot be followed."""
    doubts: list[FileDoubt] = []
    for use, paths, bases in _uses(call, doubts):
        try:
            hit = _hit(rules, call, use, paths, bases)
        except UnresolvedPath as reason:
            doubts.append(FileDoubt(use.text, str(reason)))
            continue
        if hit is not None:
            return hit
    return next((hit for doubt in doubts if (hit := _in_doubt(rules, doubt)) is not None), None)


def paths_written(call: Call) -> Iterator[str]:
    """The files that the scripts of a call certainly change, as far as their words say which; for a directory that
    something is written into, some name in it."""
    for use, paths, _ in _uses(call, []):
        if use.writes:
            try:
                for path in paths.of(use, paths.directories):
                    yield path
                    if use.inside:
                        yield f"{path}/_"
            except UnresolvedPath:
                for base in paths.directories:
                    yield normpath(join(base, use.text))


def _uses(call: Call, doubts: list[FileDoubt]) -> Iterator[tuple[FileUse, NamedPaths, Sequence[str]]]:
    """Each use of a file that can be followed, and the directories it may be relative to. Others become `doubts`."""
    for script in call.scripts:
        changes = script.files.changes
        doubts += changes.doubts
        paths = NamedPaths(call.directory, changes.targets, changes.perhaps)
        if paths.is_cut:
            doubts.append(FileDoubt("cd", "so many changes of directory are not followed"))
        for files in script.files.commands:
            doubts += files.doubts
            try:
                bases = paths.with_folders(files.folders) if files.folders else paths.directories
            except UnresolvedPath as reason:
                doubts.append(FileDoubt("a command", str(reason)))
                bases = paths.directories
            yield from ((use, paths, bases) for use in files.uses)


def _in_doubt(rules: RuleList, doubt: FileDoubt) -> FileHit | None:
    families = ("Read", *WRITES_OF_COMMANDS) if doubt.may_write else ("Read",)
    for rule, _ in rules.about_paths(*families):
        shown = doubt.word if len(doubt.word) <= _SHOWN_CHARS else f"{doubt.word[: _SHOWN_CHARS - 3]}..."
        return FileHit(rule, f"`{shown}` may name such a file: {doubt.why}; {_WAY_OUT}")
    return None


def _hit(rules: RuleList, call: Call, use: FileUse, paths: NamedPaths, bases: Sequence[str]) -> FileHit | None:
    families = ("Read", *WRITES_OF_COMMANDS) if use.writes or use.may_write else ("Read",)
    does = "writes" if use.writes else "names"
    for path in paths.of(use, bases):
        for rule in rules.about_path(path, call.roots, *families):
            return FileHit(rule, f"it {does} {path}")
        if use.inside or (use.contents and os.path.isdir(path)):  # noqa: PTH112 - of a name that is too long `Path` raises
            for rule in rules.about_path(f"{path}/_", call.roots, *families):
                return FileHit(rule, f"it {'writes into' if use.writes else 'names'} {path}")
        if use.writes and _is_in_workspace(path, call):
            for rule in rules.about_all_files(*WRITES_OF_COMMANDS):
                return FileHit(rule, f"it writes {path}")
        if use.below and os.path.isdir(path):  # noqa: PTH112 - of a name that is too long `Path` raises
            for found in paths.below(path, use):
                for rule in rules.about_path(found, call.roots, *families):
                    way = "name other paths" if use.writes else _way_around(path, found)
                    does = "changes" if use.writes else "reads"
                    return FileHit(rule, f"it {does} all below {path}, and there is {found}: {way}")
    return None


def _is_in_workspace(path: str, call: Call) -> bool:
    """Whether it certainly is: with an expansion left nobody knows where a path leads."""
    return not any(sign in path for sign in "$`") and any(lies_in(path, root) for root in call.roots)


def _way_around(folder: str, found: str) -> str:
    above, name = split(found)
    option = f"--exclude={name}" if above == folder else f"--exclude-dir={basename(above)}"
    return f"name other folders, or leave it out, as grep does with {option}"
