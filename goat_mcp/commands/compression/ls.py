"""`ls -l`: the names. Rights, owner, size and date are what was asked for least often and costs most.

Whoever asks for sizes to read (`-h`), or for an order by size or date (`-S`, `-t`), wants to see that, and does, before
each name; with what stands in columns of its own, as inodes (`-i`), the listing stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from goat_mcp.commands.compression.compressed import Compressed
from goat_mcp.commands.shell.names import Words

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
"""Which files are named, in what order and with what mark; less of what else is in a line."""
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


def press_ls(words: Words, lines: Sequence[str]) -> Compressed | None:
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
    """What is shown before a name, because it was asked for."""

    size: bool
    date: bool

    @classmethod
    def of(cls, words: Words) -> _Columns | None:
        """None where an option is about something else that stands beside the names, or is none that we know."""
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
