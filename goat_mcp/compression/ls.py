"""`ls -l`: the names. Rights, owner, size and date are what was asked for least often and costs most.

Whoever asks for more, as inodes (`-i`), sizes to read (`-h`), or an order by them (`-S`, `-t`), wants to see it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.compression.pressed import Pressed
from goat_mcp.shell.names import Words

_ENTRY = re.compile(
    r"(?P<type>[-dlbcpsD])[-rwxsStTlL]{9}[.+@]? +\d+ +"
    r"(?:\S+ +){0,3}?"  # owner, group, author
    r"(?:\d+, +\d+|[\d.,]+[KMGTPEk]?) "  # device numbers, or size
    r"(?:[A-Z][a-z]{2} [ \d]\d +(?:\d\d:\d\d|\d{4})"  # Nov 22 11:03
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


def press_ls(words: Words, lines: Sequence[str]) -> Pressed | None:
    if not _is_long(words) or _asks_for_more(words):
        return None
    kept: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if entry := _ENTRY.fullmatch(line):
            name = _name(entry["type"], entry["name"])
            if name not in ("./", "../"):
                kept.append(name)
        elif _HEADER.fullmatch(line) and _begins_a_folder(lines, at):
            kept.append(line)
        elif not _TOTAL.fullmatch(line) and not (line == "" and at + 1 < len(lines)):
            break
        at += 1
    return Pressed(tuple(kept), at)


def _is_long(words: Words) -> bool:
    return any(word in _LONG or (_is_short_option(word) and set(word) & set("lgo")) for word in _options(words))


def _asks_for_more(words: Words) -> bool:
    """Whether an option is about what stands beside the names, or is none that we know."""
    return any(
        not _LETTERS_ABOUT_NAMES.issuperset(word[1:])
        if _is_short_option(word)
        else word not in _LONG and not word.startswith(_OPTIONS_ABOUT_NAMES)
        for word in _options(words)
    )


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
