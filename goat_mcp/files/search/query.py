"""What a search asks of ripgrep, and what comes back: from ripgrep's output bytes to paths, counts and lines."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

Report = Literal["files", "matching", "counts", "lines"]
"""Every file; files with a match; matches counted per file; the matching lines themselves."""

MAX_SHOWN_COLUMNS = 500
"""Longer lines are shown as a preview of this many characters."""
MAX_LINE_COLUMNS = MAX_SHOWN_COLUMNS + 2
"""What ripgrep reports of a line: with its end, so that a line of just the length above is known to be whole."""

VCS_DIRECTORIES = (".git", ".jj", ".sl", ".hg", ".svn")
"""Never listed or searched, unless a search starts inside one."""

_COUNT = re.compile(rb"([^\0]*)\0(\d+)\n")
_NUMBER = re.compile(rb"(\d+)([:-])")
_BINARY = re.compile(rb": binary file matches \(found .*\)\Z")
_CUT = re.compile(rb" \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]\Z")
_STOPPED = re.compile(rb": WARNING: stopped searching binary file .*\Z")
LONG_LINE_MARK = " [... long line cut]"
BINARY_TEXT = "binary file matches"


@dataclass(frozen=True)
class Query:
    """One search.

    `path_rules` are lines in `.gitignore` syntax, rooted where the search starts, that hide more files;
    the repository's own ignore files keep their say. `max_depth` 1 is the start directory alone.
    """

    patterns: tuple[str, ...] = ()
    literal: bool = False
    ignore_case: bool = False
    multiline: bool = False
    only_matching: bool = False
    look_around: bool = False
    before: int = 0
    after: int = 0
    file_type: str | None = None
    path_rules: tuple[str, ...] = ()
    max_depth: int | None = None
    include_ignored: bool = False


class SearchedDirectory(Protocol):
    """What a search needs of an open directory; the workspace's are such."""

    def stat(self, name: str, /) -> os.stat_result: ...

    def fileno(self) -> int: ...


@dataclass(frozen=True)
class Target:
    """Where to search: an open directory, or the descriptor of one regular file.

    `shown` is its absolute path as the caller knows it, `real_path` where it really is.
    """

    opened: SearchedDirectory | int
    shown: str
    real_path: str

    @property
    def is_directory(self) -> bool:
        return not isinstance(self.opened, int)


@dataclass(frozen=True, slots=True)
class ResultLine:
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


def read_lines(chunks: Iterable[bytes]) -> Generator[ResultLine | GroupEnd]:
    """Matches and context in the order they come. Names with line feeds are put together again."""
    rest = b""
    unfinished = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            path, mark, text = (unfinished + line).partition(b"\0")
            number = _NUMBER.match(text)
            if mark and number:
                yield _result_line(path, number, text)
                unfinished = b""
            elif line == b"--" and not unfinished:
                yield GroupEnd()
            elif not mark and (binary := _BINARY.search(path)):
                yield ResultLine(decode(path[: binary.start()]), 0, BINARY_TEXT, True)
                unfinished = b""
            elif not mark and _STOPPED.search(path):
                unfinished = b""
            else:
                unfinished += line + b"\n"


def _result_line(path: bytes, number: re.Match[bytes], text: bytes) -> ResultLine:
    raw = text[number.end() :]
    cut = _CUT.search(raw) if len(raw) > MAX_SHOWN_COLUMNS else None
    line = (raw[: cut.start()] if cut else raw).removesuffix(b"\r").decode("utf-8", "surrogateescape")
    if len(line) > MAX_SHOWN_COLUMNS:
        line = line[:MAX_SHOWN_COLUMNS] + LONG_LINE_MARK
    return ResultLine(decode(path), int(number[1]), line, number[2] == b":")
