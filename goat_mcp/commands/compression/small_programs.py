"""`ls`, `cat`, `head`, `tail`, `echo`, `pwd`, and the short forms of git that are brief already."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.commands.compression.compressor import Compressed
from goat_mcp.commands.shell.words import Words
from goat_mcp.core import posix
from goat_mcp.files.search.priority import PriorityOrder

_ENTRY = re.compile(
    r"(?P<type>[-dlbcpsD])[-rwxsStTlL]{9}[.+@]? +\d+ +"
    r"(?:\S+ +){0,3}?"  # owner, group, author
    r"(?P<size>\d+, +\d+|[\d.,]+[KMGTPEk]?) "  # device numbers, or size
    r"(?P<date>[A-Z][a-z]{2} [ \d]\d +(?:\d\d:\d\d|\d{4})"  # Nov 22 11:03
    r"|\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d\.\d+ [-+]\d{4})?)?|\d\d-\d\d \d\d:\d\d) "
    r"(?P<name>.+)"
)
_TOTAL = re.compile(r"total [\d.,]+[KMGTPEk]?")
_HEADER = re.compile(r"(?P<folder>.+):")
_LONG = frozenset({"--format=long", "--format=verbose"})
_LETTERS_ABOUT_NAMES = frozenset("aABdfFGgHLlopRrUvX1")
"""They choose the files, their order and marks, or drop columns."""
_OPTIONS_ABOUT_NAMES = (
    *(
        "--all",
        "--almost-all",
        "--classify",
        "--color",
        "--dereference",
        "--directory",
        "--file-type",
        "--group-directories",
    ),
    *("--hide", "--ignore", "--indicator-style", "--no-group", "--recursive", "--reverse", "--sort=extension"),
    *("--sort=name", "--sort=none", "--sort=version"),
)
_SIZES = frozenset({"--human-readable", "--si", "--sort=size"})
_DATES = frozenset({"--sort=time"})


def compress_ls(words: Words, lines: Sequence[str]) -> Compressed | None:
    """Of `ls -l` the names. With `-h` or an order by size or date (`-S`, `-t`), that column stays before each name.

    A listing with other columns, such as inodes (`-i`), stays as it is.
    """
    columns = _Columns.of(words)
    if columns is None or not _is_long(words):
        return None
    kept: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if entry := _ENTRY.fullmatch(line):
            name = _name(entry["type"], entry["name"])
            if name not in ("./", "../"):
                kept.append(f"{columns.of_entry(entry)}{name}")
        elif _HEADER.fullmatch(line) and _begins_a_folder(lines, at):
            kept.append(line)
        elif _TOTAL.fullmatch(line):
            kept += [line] if columns.size else []
        elif not (line == "" and at + 1 < len(lines)):
            break
        at += 1
    return Compressed(tuple(kept), at)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns before a name, if an option asks for them."""

    size: bool
    date: bool

    @classmethod
    def of(cls, words: Words) -> _Columns | None:
        """None if an option adds other columns, or is unknown."""
        letters: set[str] = set()
        long: set[str] = set()
        for word in _options(words):
            if _is_short_option(word):
                letters.update(word[1:])
            elif word not in _LONG and not word.startswith(_OPTIONS_ABOUT_NAMES):
                long.add(word)
        if letters - _LETTERS_ABOUT_NAMES - set("hSt") or long - _SIZES - _DATES:
            return None
        return cls(bool(letters & set("hS") or long & _SIZES), bool("t" in letters or long & _DATES))

    def of_entry(self, entry: re.Match[str]) -> str:
        size = f"{' '.join(entry['size'].split())} " if self.size else ""
        return f"{size}{entry['date']} " if self.date else size


def _is_long(words: Words) -> bool:
    return any(word in _LONG or (_is_short_option(word) and set(word) & set("lgo")) for word in _options(words))


def _options(words: Words) -> Sequence[str]:
    rest = words[1:]
    options = rest[: rest.index("--")] if "--" in rest else rest
    return [word for word in options if word.startswith("-") and word != "-"]


def _is_short_option(word: str) -> bool:
    return not word.startswith("--")


def _begins_a_folder(lines: Sequence[str], at: int) -> bool:
    """Whether `NAME:` heads a listing of its own: first or after an empty line, and a listing follows."""
    follows = lines[at + 1] if at + 1 < len(lines) else ""
    return (at == 0 or lines[at - 1] == "") and (not follows or _TOTAL.fullmatch(follows) is not None)


def _name(type: str, name: str) -> str:
    if type == "d" and not name.endswith("/"):
        return f"{name}/"
    return name


_LEAST_REPEATED = 3
_MAX_COUNTED_BYTES = 4 * 1024 * 1024
"""The lines before the end of a larger file are not counted."""
_COMPLAINT = re.compile(r"(?:cat|head|tail): .+: [A-Z][a-z]+ .+")
"""A file that was not shown: its message is none of the file's lines."""
_FROM_LINE = re.compile(r"(?:-n|--lines=)?\+(?P<first>\d+)")


def compress_shown_file(
    words: Words, lines: Sequence[str], *, is_all_of_it: bool = True, directory: str | None = None
) -> Compressed | None:
    """Of `cat`, `head`, `tail`: source code with the number of each line, as Read shows it. Of other files equal
    consecutive lines once, with numbers, and without empty lines.

    A line that stays is whole. If the numbers are unknown (several files, a pipe, not `is_all_of_it`), only repeated
    lines go. For the end of a file the file itself says which lines they are, if `directory` is known.
    """
    is_shown = is_all_of_it and not any(_COMPLAINT.fullmatch(line) for line in lines)
    name = _only_file(words) if is_shown else ""
    first = _first_line(words, lines, name, directory) if name else 0
    if first and PriorityOrder().tier(name) == 0:
        numbered = tuple(f"{number}\t{line}" for number, line in enumerate(lines, first))
        return Compressed(numbered, len(lines), is_numbered=True)
    kept: list[str] = []
    for start, end, line in _runs(lines):
        if first:
            kept.extend([f"{_numbers(first + start, first + end)}\t{line}"] if line.strip() else [])
        elif end - start < _LEAST_REPEATED:
            kept.extend(lines[start : end + 1])  # without numbers an empty line must not go: it is part of the text
        else:
            kept.extend((line, f"[this line {end - start} times more]"))
    return Compressed(tuple(kept), len(lines))


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Equal consecutive lines: index of the first and the last, and the line."""
    start = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or lines[at] != lines[start]:
            yield start, at - 1, lines[start]
            start = at


def _numbers(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _only_file(words: Words) -> str:
    """The one file whose lines are shown as they are; empty if there are several, or none."""
    rest = list(words[1:])
    files = [word for word in rest if not word.startswith(("-", "+"))]
    if words[0] != "cat" and ("-n" in rest[:-1] or "-c" in rest[:-1]):
        at = rest.index("-n") if "-n" in rest else rest.index("-c")
        files = [word for word in files if word != rest[at + 1]]
    is_plain = words[0] != "cat" or len(files) == len(rest)
    return files[0] if len(files) == 1 and is_plain and not set("*?[{$`") & set(files[0]) else ""


def _first_line(words: Words, lines: Sequence[str], name: str, directory: str | None) -> int:
    """The number of the first line shown; 0 if unknown."""
    if words[0] != "tail":
        return 1
    from_line = next((found for word in words[1:] if (found := _FROM_LINE.fullmatch(word))), None)
    if from_line is not None:
        return int(from_line["first"])
    return 0 if directory is None else _line_of_end(Path(directory, name), lines)


def _line_of_end(file: Path, lines: Sequence[str]) -> int:
    """The number that the first of `lines` has in the file, if it ends with them; else 0."""
    try:
        descriptor = os.open(file, os.O_RDONLY | posix.O_NONBLOCK)
    except (OSError, ValueError):
        return 0
    with os.fdopen(descriptor, "rb") as opened:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_COUNTED_BYTES:
            return 0
        in_file = opened.read(_MAX_COUNTED_BYTES).decode("utf-8", "replace").rstrip("\n").split("\n")
    shown = [*lines]
    while shown and not shown[-1]:
        shown.pop()
    before = len(in_file) - len(shown)
    return before + 1 if shown and in_file[before:] == shown and before >= 0 else 0


def echo_line(words: Words) -> str | None:
    """The line that an `echo` prints; None if it prints more than one, or interprets escapes."""
    if words[1:2] and words[1].startswith("-") and set(words[1][1:]) <= set("neE") and words[1] != "-":
        return None
    line = " ".join(words[1:])
    return None if "\n" in line else line


def compress_echo(words: Words, lines: Sequence[str]) -> Compressed | None:
    line = echo_line(words)
    if line is None or not lines or lines[0] != line:
        return None
    return Compressed((line,) if line else (), 1)


_ONE_COMMIT = re.compile(r"[0-9a-f]{7,40} .*")
_ONE_FILE = re.compile(r"## .+|[ MTADRCU?!]{2} .+")


def compress_pwd(words: Words, lines: Sequence[str]) -> Compressed | None:
    return Compressed((lines[0],), 1) if lines[0].startswith("/") else None


def compress_one_line_log(words: Words, lines: Sequence[str]) -> Compressed | None:
    return _while(_ONE_COMMIT, lines)


def compress_short_status(words: Words, lines: Sequence[str]) -> Compressed | None:
    return _while(_ONE_FILE, lines)


def _while(pattern: re.Pattern[str], lines: Sequence[str]) -> Compressed:
    taken = next((at for at, line in enumerate(lines) if not pattern.fullmatch(line)), len(lines))
    return Compressed(tuple(lines[:taken]), taken)
