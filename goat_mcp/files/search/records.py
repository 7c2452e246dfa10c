"""From an engine's output bytes to paths, counts and lines. Both engines write ripgrep's `--null` format."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass

from goat_mcp.files.search.query import MAX_SHOWN_COLUMNS

_COUNT = re.compile(rb"([^\0]*)\0(\d+)\n")
_NUMBER = re.compile(rb"(\d+)([:-])")
_BINARY = re.compile(rb": binary file matches \(found .*\)\Z")
_CUT = re.compile(rb" \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]\Z")
_STOPPED = re.compile(rb": WARNING: stopped searching binary file .*\Z")
LONG_LINE_MARK = " [... long line cut]"
BINARY_TEXT = "binary file matches"


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line of a result: a match, or context around one. `number` 0: the file is binary and only matches."""

    path: str
    number: int
    text: str
    is_match: bool


@dataclass(frozen=True, slots=True)
class GroupEnd:
    """Lines before and after it are not neighbours."""


def decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def read_paths(chunks: Iterable[bytes]) -> Generator[list[str]]:
    """Lists of paths, as they arrive."""
    rest = b""
    for chunk in chunks:
        whole, mark, rest = (rest + chunk).rpartition(b"\0")
        if mark:
            yield decode(whole).split("\0")


def read_counts(chunks: Iterable[bytes]) -> Generator[list[tuple[str, int]]]:
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        end = 0
        counts: list[tuple[str, int]] = []
        for found in _COUNT.finditer(data):
            counts.append((decode(found[1]), int(found[2])))
            end = found.end()
        rest = data[end:]
        yield counts


def read_lines(chunks: Iterable[bytes]) -> Generator[FoundLine | GroupEnd]:
    """Matches and context in the order they come. Names with line feeds are put together again."""
    rest = b""
    unfinished = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            path, mark, text = (unfinished + line).partition(b"\0")
            number = _NUMBER.match(text)
            if mark and number:
                yield _found_line(path, number, text)
                unfinished = b""
            elif line == b"--" and not unfinished:
                yield GroupEnd()
            elif not mark and (binary := _BINARY.search(path)):
                yield FoundLine(decode(path[: binary.start()]), 0, BINARY_TEXT, True)
                unfinished = b""
            elif not mark and _STOPPED.search(path):
                unfinished = b""
            else:
                unfinished += line + b"\n"


def _found_line(path: bytes, number: re.Match[bytes], text: bytes) -> FoundLine:
    raw = text[number.end() :]
    cut = _CUT.search(raw) if len(raw) > MAX_SHOWN_COLUMNS else None
    line = (raw[: cut.start()] if cut else raw).removesuffix(b"\r").decode("utf-8", "surrogateescape")
    if len(line) > MAX_SHOWN_COLUMNS:
        line = line[:MAX_SHOWN_COLUMNS] + LONG_LINE_MARK
    return FoundLine(decode(path), int(number[1]), line, number[2] == b":")
