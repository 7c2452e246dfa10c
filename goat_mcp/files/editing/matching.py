"""Finding the text to replace, in three tiers. Putting the new text in its place is done in `fitting`.

Content is UTF-8 bytes, so that a needle in a large file costs neither a decoded copy nor a list of lines.
Source: goa, "Fuzzy matching"; contract: tools.md, Edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from goat_mcp.files.documents.line_ends import FileText, line_end, line_start, split_lines
from goat_mcp.files.editing.replacement_text import BLANKS

Tier = Literal[1, 2, 3]

MAX_LISTED_HITS = 20
"""Hits of an ambiguous search that are listed; the others are only counted."""
MAX_EVERY_HITS = 10_000
"""Exact hits listed when all are asked for; beyond, `Matches.needle` replaces them all at once."""
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
# The second half of CRLF is no line end of its own, and CRLF is never taken for two.
_ANY_LINE_END = rb"(?>\r\n|(?<!\r)\n|\r)"
_FOLDED = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u00a0\u2007\u202f", " "),
}
_FOLDING = str.maketrans(_FOLDED)
_SAFE_RUN = re.compile(f"[^{re.escape(''.join({*_FOLDED, *_FOLDED.values()}))}\t]+")
"""Characters that no tier alters, so that a line which matches holds them as they are."""
_MAX_BLANKS_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Hit:
    """`content[start:end]` matches."""

    start: int
    end: int


@dataclass(frozen=True)
class Matches:
    """The first tier with a hit. `hits` may be fewer than `count` (see `find`), and overlap unless all were asked for.

    `needle` is what stands at each hit, if that is the same everywhere.
    """

    tier: Tier
    count: int
    hits: tuple[Hit, ...]
    needle: bytes | None = None

    def every_hit(self, content: bytes) -> Iterator[Hit]:
        """All hits, those that are not listed included."""
        yield from self.hits
        if self.needle is not None and len(self.hits) < self.count:
            at = content.find(self.needle, self.hits[-1].end)
            while at >= 0:
                yield Hit(at, at + len(self.needle))
                at = content.find(self.needle, at + len(self.needle))


def find(text: FileText, wanted: str, *, allow_fuzz: bool, every: bool) -> Matches | None:
    """Look for `wanted` (not empty), tier by tier.

    With `every`, `hits` are all hits from the left that do not overlap; else the first few, overlapping ones
    included, because a second place makes the first one a guess.
    """
    found = _find_exact(text, wanted, every=every)
    if found is None and allow_fuzz and wanted.strip():
        found = _find_lines(text.data, wanted, every=every)
    return found


def fold(line: str) -> str:
    """Tier 3's view of a line: typographic quotes, dashes and no-break spaces as ASCII, no blanks around."""
    return line.translate(_FOLDING).strip(BLANKS)


def with_line_ends(text: str, line_end: str) -> str:
    """`text` with every terminator replaced by `line_end`."""
    return _LINE_ENDS.sub(lambda _: line_end, text)


def to_bytes(text: str) -> bytes:
    """UTF-8; lone surrogates, which UTF-16 files may hold, pass."""
    return text.encode("utf-8", "surrogatepass")


def to_text(content: bytes) -> str:
    """The other way. Bytes that are no UTF-8 belong to a file whose codec nobody knows: latin-1 carries them."""
    try:
        return content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _find_exact(text: FileText, wanted: str, *, every: bool) -> Matches | None:
    content = text.data
    needle = to_bytes(wanted)
    if _LINE_ENDS.search(wanted):
        if text.line_end is None:
            return _find_in_mixed(content, wanted, every=every)
        if not text.line_end:
            return None
        needle = to_bytes(with_line_ends(wanted, text.line_end.decode()))
    size = len(needle)
    step = size if every else 1
    hits: list[Hit] = []
    at = content.find(needle)
    while at >= 0 and len(hits) < (MAX_EVERY_HITS if every else MAX_LISTED_HITS):
        hits.append(Hit(at, at + size))
        at = content.find(needle, at + step)
    if not hits:
        return None
    count = len(hits) if at < 0 else content.count(needle, hits[0].start)
    return Matches(1, max(count, len(hits)), tuple(hits), needle)


def _find_in_mixed(content: bytes, wanted: str, *, every: bool) -> Matches | None:
    """Tier 1 if the file's lines end in different ways: each terminator of the needle matches any."""
    pieces = [re.escape(to_bytes(piece)) for piece in _LINE_ENDS.split(wanted)]
    pattern = re.compile(_ANY_LINE_END.join(pieces))
    hits: list[Hit] = []
    count = at = 0
    while found := pattern.search(content, at):
        count += 1
        if every or count <= MAX_LISTED_HITS:
            hits.append(Hit(*found.span()))
        at = found.end() if every else found.start() + 1
    return Matches(1, count, tuple(hits)) if count else None


def _find_lines(content: bytes, wanted: str, *, every: bool) -> Matches | None:
    """Runs of whole lines that equal those of `wanted` but for blanks, quotes and dashes.

    What matches in tier 2 matches in tier 3 as well, so that one pass serves both.
    """
    lines = [line.rstrip("\r\n") for line in split_lines(wanted)]
    trimmed = [line.rstrip(BLANKS) for line in lines]
    window = _Window(content, [fold(line) for line in lines], ends_line=wanted.endswith(("\n", "\r")))
    second, third = _HitCollector(2, every), _HitCollector(3, every)
    for hit in window.hits():
        third.add(hit)
        ended = content[hit.start : hit.end] + (b"" if window.ends_line else b"\n")
        if [to_text(line).rstrip(BLANKS) for line in ended.splitlines()] == trimmed:
            second.add(hit)
    return second.found() or third.found()


@dataclass
class _HitCollector:
    """The hits of one tier, with those left out that `find` does not list."""

    tier: Tier
    every: bool
    count: int = 0
    hits: list[Hit] = field(default_factory=list[Hit])

    def add(self, hit: Hit) -> None:
        if self.every and self.hits and hit.start < self.hits[-1].end:
            return
        self.count += 1
        if self.every or self.count <= MAX_LISTED_HITS:
            self.hits.append(hit)

    def found(self) -> Matches | None:
        return Matches(self.tier, self.count, tuple(self.hits)) if self.count else None


@dataclass(frozen=True)
class _Window:
    """As many lines as the needle has, slid over the places where its most telling line may be."""

    content: bytes
    keys: list[str]
    ends_line: bool

    def hits(self) -> Iterator[Hit]:
        anchor, index = self._anchor()
        content, key = self.content, self.keys[index]
        at = content.find(anchor)
        while at >= 0:
            start, (end, after) = line_start(content, at), line_end(content, at)
            if self._matches(start, end, key) and (hit := self._around(start, end, after, index)) is not None:
                yield hit
            at = content.find(anchor, after) if after < len(content) else -1

    def _anchor(self) -> tuple[bytes, int]:
        """The longest run of characters a matching line must hold as they are, and in which line it is."""
        runs = [(run, index) for index, key in enumerate(self.keys) for run in _SAFE_RUN.findall(key)]
        if not runs:
            return b"", next(index for index, key in enumerate(self.keys) if key)
        run, index = max(runs, key=lambda found: len(found[0]))
        return to_bytes(run), index

    def _matches(self, start: int, end: int, key: str) -> bool:
        if not len(key) <= end - start <= 4 * len(key) + _MAX_BLANKS_BYTES:
            return False  # too short or too long, whatever is folded: not worth a copy
        return fold(to_text(self.content[start:end])) == key

    def _around(self, start: int, end: int, after: int, index: int) -> Hit | None:
        """The hit whose line `index` is this one, if the other lines match as well."""
        first = start
        for key in reversed(self.keys[:index]):
            if first == 0:
                return None
            first = line_start(self.content, first - 1)
            if not self._matches(first, line_end(self.content, first)[0], key):
                return None
        for key in self.keys[index + 1 :]:
            if after == end or after == len(self.content):
                return None
            start = after
            end, after = line_end(self.content, start)
            if not self._matches(start, end, key):
                return None
        return Hit(first, after if self.ends_line else end)
