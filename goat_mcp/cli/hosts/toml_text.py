"""TOML of which some tables go and one comes, every other line staying as it is.

Entries written inline or with dotted keys are not edited: that is refused, not guessed. Edited as lines, since tomlkit
counts the comments above a header to the table before it: removing a table would delete the next table's comments.
"""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

_HEADER = re.compile(r"\s*(\[\[?.+?\]?\])\s*(?:#.*)?\Z")
_STRINGS = re.compile(r"\"\"\"|'''")
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


class NotToml(ValueError):
    """The text cannot be read, or not be edited; the message says where and why."""


@dataclass(frozen=True)
class _Table:
    """Lines from a header to the next one; comments right above a header are the header's.

    Comments behind a blank line are nobody's."""

    path: tuple[str, ...]
    start: int
    end: int


def read_toml(text: str) -> dict[str, Any]:
    """Raises `NotToml`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as broken:
        raise NotToml(str(broken)) from None
    except RecursionError:
        raise NotToml("is nested too deeply") from None
    except ValueError:
        raise NotToml("holds a number of too many digits") from None


def edited_toml(text: str, root: str, *, remove: Sequence[str], add: Mapping[str, Any]) -> str:
    """The text without some tables below `root`, and with others at the end of those that stay. Raises `NotToml`."""
    before = read_toml(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    tables = _tables(lines)
    gone = [table for table in tables if table.path[:1] == (root,) and table.path[1:2] and table.path[1] in remove]
    at = gone[0].start if gone else len(lines)
    new = newline.join(line for key, value in add.items() for line in _written(root, key, value))
    pieces: list[str] = []
    for index, line in enumerate([*lines, ""]):
        if index == at and new:
            before_it = "".join(pieces)
            if before_it and not before_it.endswith("\n"):
                pieces.append(newline)
            if before_it.strip() and not before_it.endswith((f"{newline}{newline}", "\n\n")):
                pieces.append(newline)
            pieces.append(new + newline + (newline if any(rest.strip() for rest in _rest(lines, gone, at)) else ""))
        if not any(table.start <= index < table.end for table in gone):
            pieces.append(line)
    edited = "".join(pieces)
    # The edit is one of lines: what it means is held against what was meant.
    with contextlib.suppress(NotToml):
        if _without_empty(read_toml(edited), root) == _without_empty(_expected(before, root, remove, add), root):
            return edited
    raise NotToml(f"writes {root} in a way that cannot be edited without changing the rest of it")


def _expected(before: Mapping[str, Any], root: str, remove: Sequence[str], add: Mapping[str, Any]) -> dict[str, Any]:
    found = before.get(root)
    entries = cast("dict[str, Any]", found).items() if isinstance(found, dict) else ()
    return {**before, root: {**{name: entry for name, entry in entries if name not in remove}, **add}}


def _without_empty(tree: dict[str, Any], root: str) -> dict[str, Any]:
    """A table that holds nothing is as good as none."""
    return tree if tree.get(root) else {key: value for key, value in tree.items() if key != root}


def _rest(lines: Sequence[str], gone: Sequence[_Table], at: int) -> list[str]:
    return [
        line
        for index, line in enumerate(lines)
        if index >= at and not any(table.start <= index < table.end for table in gone)
    ]


def _tables(lines: Sequence[str]) -> list[_Table]:
    heads: list[tuple[int, tuple[str, ...]]] = []
    within = ""
    for index, line in enumerate(lines):
        if not within and (match := _HEADER.match(line.rstrip("\r\n"))) and (path := _path(match.group(1))):
            heads.append((index, path))
            continue
        for quotes in _STRINGS.findall(line):
            within = "" if within == quotes else within or quotes
    starts = [_above(lines, index) for index, _ in heads]
    ends = [*starts[1:], len(lines)][: len(starts)]
    return [
        _Table(path, start, _own_end(lines, header + 1, end))
        for (header, path), start, end in zip(heads, starts, ends, strict=True)
    ]


def _own_end(lines: Sequence[str], first: int, end: int) -> int:
    """Where a table's own lines end: comments behind a blank line at its end are about something else."""
    last = end
    while last > first and (not (line := lines[last - 1].strip()) or line.startswith("#")):
        last -= 1
    blank = next((index for index in range(last, end) if not lines[index].strip()), end)
    return blank if any(line.strip() for line in lines[blank:end]) else end


def _above(lines: Sequence[str], header: int) -> int:
    while header and lines[header - 1].lstrip().startswith("#"):
        header -= 1
    return header


def _path(header: str) -> tuple[str, ...]:
    try:
        found: Any = tomllib.loads(header)
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while isinstance(found, dict) and found:
        ((key, found),) = cast("dict[str, Any]", found).items()
        path.append(key)
    return tuple(path)


def _written(root: str, key: str, value: Mapping[str, Any]) -> list[str]:
    head = f"{root}.{_key(key)}"
    flat = {name: child for name, child in value.items() if not isinstance(child, dict)}
    lines = [f"[{head}]", *(f"{_key(name)} = {_value(child)}" for name, child in flat.items())]
    for name, child in value.items():
        if isinstance(child, dict):
            inner = cast("dict[str, Any]", child).items()
            lines += ["", f"[{head}.{_key(name)}]", *(f"{_key(key)} = {_value(item)}" for key, item in inner)]
    return lines


def _key(name: str) -> str:
    return name if _BARE.match(name) else json.dumps(name)


def _value(value: Any) -> str:
    """Strings, numbers, booleans and lists of those are written as in JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
