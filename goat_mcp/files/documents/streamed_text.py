"""An excerpt of a file too large to hold: seek by the line index, decode block by block, keep only what is shown."""

from __future__ import annotations

import codecs
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from goat_mcp.files.documents.excerpt import MAX_LINE_CHARS, MIN_NUMBERED_CHARS, Excerpt, first_line
from goat_mcp.files.documents.line_ends import split_lines
from goat_mcp.files.documents.line_index import LineIndex, LinePlace, read_block
from goat_mcp.files.documents.text_encoding import TextFormat

COUNT_ON_S = 0.5
"""How long counting goes on past the lines that were asked for. 100 MiB take less; 20 GiB would take a minute."""
MEASURE_LINE_S = 0.5
"""How long the end of one long line is looked for, to state its length. 200 MB take less."""


class LinesNotReached(Exception):
    """The deadline came before the lines asked for. What is counted stays in the index."""


@dataclass(frozen=True)
class Bounds:
    """What ends an excerpt. `deadline_s` is a `time.monotonic()` time; `stop` is set when nobody waits any more."""

    offset: int | None
    limit: int
    max_chars: int
    deadline_s: float
    stop: threading.Event = field(default_factory=threading.Event)


def excerpt_of_stream(descriptor: int, index: LineIndex, bounds: Bounds, legacy_encoding: str | None = None) -> Excerpt:
    """Lines of an open file, in memory that does not grow with it.

    Raises `LinesNotReached` if the first line asked for was not found in time.
    """
    offset = bounds.offset
    count_until_s = min(time.monotonic() + COUNT_ON_S, bounds.deadline_s)

    def go_on(so_far: LineIndex) -> bool:
        now_s = time.monotonic()
        is_reached = offset is None or 0 <= offset <= so_far.total_lines
        return not bounds.stop.is_set() and now_s < (count_until_s if is_reached else bounds.deadline_s)

    index.scan(descriptor, go_on=go_on)
    if not index.is_complete and offset is not None and not 0 <= offset <= index.total_lines:
        raise LinesNotReached
    start = first_line(offset, index.total_lines)
    text_format = index.format(legacy_encoding)
    collected = _Collected(bounds)
    if start <= index.total_lines or not index.is_complete:
        place = index.place_of(start)
        _collect(_pieces(descriptor, index, place.offset, text_format), place, collected)
    return Excerpt(
        collected.lines,
        start,
        max(index.total_lines, start - 1 + len(collected.lines)) if collected.lines else index.total_lines,
        text_format,
        index.eol,
        is_counted=index.is_complete,
        cut_lengths=collected.cut_lengths,
        is_last_line_measured=not collected.is_late,
    )


@dataclass
class _Collected:
    """Lines so far. The line being read grows piece by piece: its head is kept, the rest only measured."""

    bounds: Bounds
    lines: list[str] = field(default_factory=list[str])
    cut_lengths: dict[int, int] = field(default_factory=dict[int, int])
    late_after_s: float = field(default_factory=lambda: time.monotonic() + MEASURE_LINE_S)
    is_late: bool = False
    _chars: int = 0
    _head: str = ""
    _length: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.lines) >= self.bounds.limit or self._chars > self.bounds.max_chars

    def add(self, part: str) -> None:
        if len(self._head) < MAX_LINE_CHARS:
            self._head += part[: MAX_LINE_CHARS - len(self._head)]
        self._length += len(part)

    def end_line(self) -> None:
        if self._length > MAX_LINE_CHARS:
            self.cut_lengths[len(self.lines)] = self._length
        self.lines.append(self._head)
        self._chars += len(self._head) + MIN_NUMBERED_CHARS
        self._head, self._length = "", 0

    def end_text(self) -> None:
        if self._length:
            self.end_line()


def _collect(pieces: Iterator[str], place: LinePlace, into: _Collected) -> None:
    skip_lines = place.skip_lines
    drop_line_feed = place.in_crlf
    for piece in pieces:
        if time.monotonic() > into.late_after_s:
            into.is_late = True
            break
        if not piece:
            continue
        text = piece[1:] if drop_line_feed and piece[0] == "\n" else piece
        drop_line_feed = piece[-1] == "\r"
        if "\n" not in text and "\r" not in text:
            if not skip_lines:
                into.add(text)
            continue
        for line in split_lines(text):
            is_ended = line[-1] in "\r\n"
            if skip_lines:
                skip_lines -= is_ended
                continue
            into.add(line.rstrip("\r\n"))
            if is_ended:
                into.end_line()
                if into.is_full:
                    return
    into.end_text()


def _pieces(descriptor: int, index: LineIndex, offset: int, text_format: TextFormat) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(text_format.encoding)("replace")
    while block := read_block(descriptor, offset, index.block_bytes):
        yield decoder.decode(block)
        offset += len(block)
    yield decoder.decode(b"", True)
