"""Searching one file and telling of it, in ripgrep's `--null` format."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from goat_mcp.files.search.python_engine.file_text import open_text
from goat_mcp.files.search.query import MAX_LINE_COLUMNS, Query, Report

# A match within a line is then not sure to be found in a whole text as well, or costs as much there.
_LINE_ONLY = re.compile(r"\\[AZB]|\(\?[^:P]|[+*?}]\+")
_CAN_SPAN = re.compile(r"\\[nsWD]|\[\^|\.")


@dataclass(frozen=True, slots=True)
class Line:
    """A line with what matched in it; context has no matches."""

    number: int
    text: str
    matches: tuple[str, ...] = ()


@dataclass
class Scan:
    """Searches file after file. `has_shown`: an earlier one had lines to show.

    `before_block` is called before a block of text is searched.
    """

    pattern: re.Pattern[str]
    query: Query
    report: Report
    out: BinaryIO
    before_block: Callable[[], None]
    has_shown: bool = False

    def file(self, file: BinaryIO, path: str, *, was_named: bool) -> bool:
        """Search an open file; True if it matches. A binary one counts only where the caller named it."""
        text = open_text(file, whole=self.query.multiline, stops_at_nul=not was_named)
        if text.is_binary and not was_named:
            return False
        lines = self._spanning(text.blocks) if self.query.multiline else self._within_lines(text.blocks)
        name = path.encode("utf-8", "surrogateescape")
        if self.report == "counts":
            return self._count(lines, name)
        if self.report == "matching" or text.is_binary:
            return self._tell_once(lines, name)
        return self._show(lines, name)

    def _count(self, lines: Iterable[Line], name: bytes) -> bool:
        counts_matches = self.query.only_matching or (
            self.query.multiline and _CAN_SPAN.search(self.pattern.pattern) is not None
        )
        count = sum((len(line.matches) if counts_matches else 1) for line in lines if line.matches)
        if count:
            self.out.write(b"%s\0%d\n" % (name, count))
        return count > 0

    def _tell_once(self, lines: Iterable[Line], name: bytes) -> bool:
        if not any(line.matches for line in lines):
            return False
        self.out.write(name + (b"\0" if self.report == "matching" else b': binary file matches (found "\\0" byte)\n'))
        return True

    def _show(self, lines: Iterable[Line], name: bytes) -> bool:
        has_groups = bool(self.query.before or self.query.after)
        matches = False
        last = -1
        for line in lines:
            if has_groups and line.number != last + 1 and (self.has_shown or last >= 0):
                self.out.write(b"--\n")
            last = line.number
            matches = matches or bool(line.matches)
            mark = b":" if line.matches else b"-"
            shown = line.matches if self.query.only_matching and line.matches else (line.text,)
            for text in shown:
                data = text[:MAX_LINE_COLUMNS].encode("utf-8", "surrogateescape")
                self.out.write(b"%s\0%d%s%s\n" % (name, line.number, mark, data))
        self.has_shown = self.has_shown or matches
        return matches

    def _within_lines(self, blocks: Iterable[str]) -> Iterator[Line]:
        search = self.pattern.search
        looks_ahead = _LINE_ONLY.search(self.pattern.pattern) is None
        wants_all = self.query.only_matching
        before: deque[Line] = deque(maxlen=self.query.before)
        after = 0
        number = 0
        for block in blocks:
            self.before_block()
            if looks_ahead and not after and not self.query.before and search(block) is None:
                number += block.count("\n")
                continue
            for text in _lines_of(block):
                number += 1
                found = search(text)
                if found is not None:
                    yield from before
                    before.clear()
                    matches = tuple(one[0] for one in self.pattern.finditer(text)) if wants_all else (found[0],)
                    yield Line(number, text, tuple(matches))
                    after = self.query.after
                elif after:
                    yield Line(number, text)
                    after -= 1
                elif self.query.before:
                    before.append(Line(number, text))

    def _spanning(self, blocks: Iterable[str]) -> Iterator[Line]:
        for text in blocks:
            self.before_block()
            lines = _lines_of(text)
            matched = self._matched_lines(text, lines)
            shown: set[int] = set()
            for index in matched:
                shown.update(range(max(0, index - self.query.before), min(len(lines), index + self.query.after + 1)))
            for index in sorted(shown):
                yield Line(index + 1, lines[index], tuple(matched.get(index, ())))

    def _matched_lines(self, text: str, lines: Sequence[str]) -> dict[int, list[str]]:
        """What matched in each line, by index. A match over several lines is a piece in each of them."""
        starts: list[int] = []
        position = 0
        for line in lines:
            starts.append(position)
            position += len(line) + 1
        matched: dict[int, list[str]] = {}
        for found in self.pattern.finditer(text):
            index = bisect_right(starts, found.start()) - 1
            if not lines or (found.start() >= len(text) and text.endswith("\n")):
                continue  # behind the last line end there is no line
            pieces = found[0].removesuffix("\n").split("\n")
            for offset, piece in enumerate(pieces):
                matched.setdefault(index + offset, []).append(piece)
        return matched


def _lines_of(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines
