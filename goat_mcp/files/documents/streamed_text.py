"""Lines of a large file, read as a stream. One pass, which can stop and go on later, finds where its lines lie.

The pass also finds out what else takes reading every byte: how lines end, whether all of it is UTF-8, and the content
hash. Nothing here knows paths; `LineIndexes` remembers files by a key that its caller makes.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import threading
import time
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from goat_mcp.files.documents.excerpt import MAX_LINE_CHARS, MIN_NUMBERED_CHARS, Excerpt, first_line
from goat_mcp.files.documents.line_ends import Eol, eol_of_counts, split_lines
from goat_mcp.files.documents.text_encoding import TextFormat, sniff_bom

BLOCK_BYTES = 256 * 1024
"""Lines are counted per block of this size: finding a line means reading one block."""
MAX_HASHED_BYTES = 256 * 1024 * 1024
"""Larger files get no content hash: it would take longer than a call should, and Edit refuses them anyway."""
MAX_INDEXES = 32
_RACY_NS = 20_000_000
"""A file changed this shortly before may change again under the same mtime: a clock tick is 4-10 ms."""


@dataclass(frozen=True, slots=True)
class IndexKey:
    """One version of one file. The change time tells versions apart whose mtime was set back."""

    real_path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class LinePosition:
    """Read from byte `offset`, drop one line feed if `in_crlf`, then skip `skip_lines` lines."""

    offset: int
    skip_lines: int
    in_crlf: bool


class LineIndex:
    """Line counts before each block of one file. Filled by `scan`; other methods answer for what is scanned so far."""

    def __init__(self, head: bytes, size: int, *, block_bytes: int = BLOCK_BYTES) -> None:
        """`head`: at least the first four bytes of the file. `block_bytes`: a multiple of four."""
        self.block_bytes = block_bytes
        announced = sniff_bom(head)
        self._format = announced or TextFormat()
        self._start = len(announced.bom) if announced else 0
        self._decoder = _wide_decoder(self._format)
        self._utf_8_check = codecs.getincrementaldecoder("utf-8")()
        self._hash = hashlib.sha256(head[: self._start]) if size <= MAX_HASHED_BYTES else None
        self._lines_before = array("Q")
        self._split_crlf_blocks: set[int] = set()
        self._lf = self._crlf = self._cr = 0
        self._after_cr = False
        self._in_line = False
        self._lock = threading.Lock()
        self.is_utf_8 = True
        self.is_complete = False
        self.scanned_bytes = self._start

    @property
    def lines_ended(self) -> int:
        return self._lf + self._crlf + self._cr

    @property
    def total_lines(self) -> int:
        """All lines once complete, until then the lines known to exist."""
        return self.lines_ended + self._in_line

    @property
    def eol(self) -> Eol:
        return eol_of_counts(lf=self._lf, crlf=self._crlf, cr=self._cr)

    @property
    def sha256(self) -> str:
        """Of the whole content; empty if the file is not scanned to its end or too large to be hashed."""
        return self._hash.hexdigest() if self._hash is not None and self.is_complete else ""

    def format(self, legacy_encoding: str | None) -> TextFormat:
        """How the text is to be decoded, by the same rules as `decode_text`."""
        if self._decoder is not None or self.is_utf_8:
            return self._format
        if legacy_encoding is not None and not self._start:
            return TextFormat(legacy_encoding)
        return TextFormat("latin-1", self._format.bom, is_guess=True)

    def scan(self, descriptor: int, *, go_on: Callable[[LineIndex], bool]) -> None:
        """Read on from where the last scan stopped, while `go_on` says so after each block, at most to the end."""
        with self._lock:
            while not self.is_complete and go_on(self):
                block = read_block(descriptor, self.scanned_bytes, self.block_bytes)
                if block:
                    self._take(block)
                if len(block) < self.block_bytes:
                    self._finish()

    def position_of(self, line: int) -> LinePosition:
        """Where to start reading for `line`, counted from 1."""
        block = max(0, bisect_left(self._lines_before, line - 1) - 1)
        lines_before = self._lines_before[block] if self._lines_before else 0
        return LinePosition(
            self._start + block * self.block_bytes, line - 1 - lines_before, in_crlf=block in self._split_crlf_blocks
        )

    def _take(self, block: bytes) -> None:
        self._lines_before.append(self.lines_ended)
        if self._hash is not None:
            self._hash.update(block)
        if self._decoder is not None:
            self._count(self._decoder.decode(block))
        else:
            self._count(block)
            self._check_utf_8(block)
        self.scanned_bytes += len(block)

    def _count(self, block: bytes | str) -> None:
        if not block:
            return
        if isinstance(block, str):
            lf, cr = block.count("\n"), block.count("\r")
            crlf = block.count("\r\n") if cr and lf else 0
            first, last = block[0], block[-1]
        else:
            # Looking for a byte is ten times faster than counting it, and most files have no CR.
            lf = block.count(b"\n") if b"\n" in block else 0
            cr = block.count(b"\r") if b"\r" in block else 0
            crlf = block.count(b"\r\n") if cr and lf else 0
            first, last = chr(block[0]), chr(block[-1])
        self._lf += lf - crlf
        self._cr += cr - crlf
        self._crlf += crlf
        if self._after_cr and first == "\n":
            # The CR was counted as a line end of its own with the block before.
            self._lf -= 1
            self._cr -= 1
            self._crlf += 1
            self._split_crlf_blocks.add(len(self._lines_before) - 1)
        self._after_cr = last == "\r"
        self._in_line = last not in "\r\n"

    def _check_utf_8(self, block: bytes, *, is_last: bool = False) -> None:
        if not self.is_utf_8 or (block.isascii() and not is_last and not self._utf_8_check.getstate()[0]):
            return
        try:
            self._utf_8_check.decode(block, is_last)
        except UnicodeDecodeError:
            self.is_utf_8 = False

    def _finish(self) -> None:
        if self._decoder is None:
            self._check_utf_8(b"", is_last=True)
        else:
            self._count(self._decoder.decode(b"", True))
        self.is_complete = True


@dataclass
class LineIndexes:
    """The indexes of the files read last, so that the next page of one is found at once."""

    _by_key: OrderedDict[IndexKey, LineIndex] = field(default_factory=OrderedDict[IndexKey, LineIndex])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, key: IndexKey, head: bytes) -> LineIndex:
        """The index of this very version of a file, new if there is none."""
        with self._lock:
            index = self._by_key.get(key)
            if index is None:
                index = LineIndex(head, key.size)
                if time.time_ns() - max(key.mtime_ns, key.ctime_ns) < _RACY_NS:
                    return index
                self._by_key[key] = index
            self._by_key.move_to_end(key)
            if len(self._by_key) > MAX_INDEXES:
                self._by_key.popitem(last=False)
            return index


def read_block(descriptor: int, offset: int, size: int) -> bytes:
    """`size` bytes from `offset` on; fewer only at the end of the file."""
    os.lseek(descriptor, offset, os.SEEK_SET)
    block = os.read(descriptor, size)
    while len(block) < size:
        more = os.read(descriptor, size - len(block))
        if not more:
            break
        block += more
    return block


def _wide_decoder(format: TextFormat) -> codecs.IncrementalDecoder | None:
    """A decoder for codecs in which a line feed is more than one byte; None for all others."""
    if format.encoding.startswith(("utf-16-", "utf-32-")):
        return codecs.getincrementaldecoder(format.encoding)("replace")
    return None


COUNT_ON_S = 0.5
"""How long counting goes on past the lines that were asked for. 100 MiB take less; 20 GiB would take a minute."""
MEASURE_LINE_S = 0.5
"""How long the end of one long line is looked for, to state its length. 200 MB take less."""


class LinesNotReached(Exception):
    """The deadline came before the lines asked for. What is counted stays in the index."""


@dataclass(frozen=True)
class ReadLimits:
    """What ends an excerpt. `deadline_s` is a `time.monotonic()` time; `stop` is set when nobody waits any more."""

    offset: int | None
    limit: int
    max_chars: int
    deadline_s: float
    stop: threading.Event = field(default_factory=threading.Event)


def excerpt_of_stream(
    descriptor: int, index: LineIndex, limits: ReadLimits, legacy_encoding: str | None = None
) -> Excerpt:
    """Lines of an open file, in memory that does not grow with it.

    Raises `LinesNotReached` if the first line asked for was not found in time.
    """
    offset = limits.offset
    count_until_s = min(time.monotonic() + COUNT_ON_S, limits.deadline_s)

    def go_on(so_far: LineIndex) -> bool:
        now_s = time.monotonic()
        is_reached = offset is None or 0 <= offset <= so_far.total_lines
        return not limits.stop.is_set() and now_s < (count_until_s if is_reached else limits.deadline_s)

    index.scan(descriptor, go_on=go_on)
    if not index.is_complete and offset is not None and not 0 <= offset <= index.total_lines:
        raise LinesNotReached
    start = first_line(offset, index.total_lines)
    text_format = index.format(legacy_encoding)
    collected = _LineCollector(limits)
    if start <= index.total_lines or not index.is_complete:
        place = index.position_of(start)
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
class _LineCollector:
    """Lines so far. The line being read grows piece by piece: its head is kept, the rest only measured."""

    limits: ReadLimits
    lines: list[str] = field(default_factory=list[str])
    cut_lengths: dict[int, int] = field(default_factory=dict[int, int])
    late_after_s: float = field(default_factory=lambda: time.monotonic() + MEASURE_LINE_S)
    is_late: bool = False
    _chars: int = 0
    _head: str = ""
    _length: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.lines) >= self.limits.limit or self._chars > self.limits.max_chars

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


def _collect(pieces: Iterator[str], place: LinePosition, into: _LineCollector) -> None:
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
