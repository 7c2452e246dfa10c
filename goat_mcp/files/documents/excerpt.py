"""What of a document fits an answer: a run of numbered lines, cut and paged, or whole parts (PDF pages, cells)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from operator import add

from goat_mcp.files.documents.line_ends import Eol, line_ending
from goat_mcp.files.documents.text_encoding import DecodedText, TextFormat
from goat_mcp.files.documents.visible_text import make_visible

MAX_LINE_CHARS = 2_000
MIN_NUMBERED_CHARS = 3
"""A digit, a tab and a line feed: what an empty line takes."""


@dataclass(frozen=True)
class Excerpt:
    """Lines without their terminators, each at most `MAX_LINE_CHARS` long.

    `cut_lengths` holds the real length of each line that was cut, by its position in `lines`.
    `total_lines` is only a lower bound if `is_counted` is False, and so is the last line's length if
    `is_last_line_measured` is.
    """

    lines: Sequence[str]
    start_line: int
    total_lines: int
    format: TextFormat
    eol: Eol
    is_counted: bool = True
    cut_lengths: dict[int, int] = field(default_factory=dict[int, int])
    is_last_line_measured: bool = True

    @property
    def is_whole(self) -> bool:
        """Every character of the text is in it."""
        return self.is_counted and len(self.lines) == self.total_lines and not self.cut_lengths


@dataclass(frozen=True)
class NumberedPage:
    """`N<TAB>line`, joined by line feeds. `lines_shown` may be less than the excerpt's if the cap came first."""

    text: str
    lines_shown: int
    has_escapes: bool


def first_line(offset: int | None, total_lines: int) -> int:
    """The line an offset means: from 1, 0 is 1, negative counts from the end."""
    if offset is None or 0 <= offset <= 1:
        return 1
    return offset if offset > 0 else max(1, total_lines + offset + 1)


def excerpt_of_text(decoded: DecodedText, offset: int | None, limit: int, max_chars: int) -> Excerpt:
    """`limit` lines of a text in memory, from `offset` on; fewer if these are more than `max_chars` already."""
    text = decoded.text
    eol = line_ending(text)
    if eol in ("crlf", "cr", "mixed"):
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    total = text.count("\n") + (not text.endswith("\n") and text != "")
    start = first_line(offset, total)
    lines = _lines_from(text, start, max_chars)[:limit] if start <= total else []
    cut_lengths: dict[int, int] = {}
    if lines and max(map(len, lines)) > MAX_LINE_CHARS:
        cut_lengths = {position: len(line) for position, line in enumerate(lines) if len(line) > MAX_LINE_CHARS}
        lines = [line[:MAX_LINE_CHARS] for line in lines]
    return Excerpt(lines, start, total, decoded.format, eol, cut_lengths=cut_lengths)


def _lines_from(text: str, start: int, max_chars: int) -> list[str]:
    """Whole lines from the one numbered `start`. Splitting no more than can be shown is half of a read's time."""
    if start > 1:
        text = text.split("\n", start - 1)[-1]
    text = text.removesuffix("\n")
    end = text.find("\n", max_chars)
    if end < 0:
        return text.split("\n")
    lines = text[:end].split("\n")
    # Long lines will be cut, so that more of them than these fit a page.
    return lines if max(map(len, lines)) <= MAX_LINE_CHARS else text.split("\n")


def number_lines(excerpt: Excerpt, max_chars: int, max_bytes: int | None = None) -> NumberedPage:
    """The excerpt as a page of at most `max_chars` characters (and bytes of UTF-8), whole lines, at least one."""
    lines = excerpt.lines[: max_chars // MIN_NUMBERED_CHARS + 1]
    numbered = list(map(add, _prefixes(excerpt.start_line, len(lines)), lines))
    for position, length in excerpt.cut_lengths.items():
        if position < len(numbered):
            is_last = position == len(excerpt.lines) - 1
            at_least = "" if excerpt.is_last_line_measured or not is_last else "more than "
            numbered[position] += f" [... line cut: {MAX_LINE_CHARS} of {at_least}{length} characters shown]"
    text = "\n".join(numbered)
    visible = make_visible(text)
    has_escapes = visible is not text
    if has_escapes:
        numbered = visible.split("\n")
    shown = len(numbered)
    if len(visible) > max_chars:
        shown = _how_many_fit(list(map(len, numbered)), max_chars)
    if max_bytes is not None:
        shown = min(shown, _how_many_fit([len(line.encode()) for line in numbered], max_bytes))
    if shown < len(numbered):
        visible = "\n".join(numbered[:shown])
    return NumberedPage(visible, shown, has_escapes)


@lru_cache(maxsize=8)
def _prefixes(first: int, count: int) -> tuple[str, ...]:
    """What stands before each line. Kept: reads of whole files begin alike, and making them is a third of a read."""
    return tuple(f"{number}\t" for number in range(first, first + count))


def _how_many_fit(lengths: list[int], most: int) -> int:
    """How many lines of these lengths, joined by line feeds, fit; one at least, so that paging gets on."""
    ends = list(accumulate(lengths))
    # Line number n, counted from 1, ends n - 1 line feeds later than the lengths alone say.
    return max(1, bisect_right(range(len(ends)), most, key=lambda at: ends[at] + at))


@dataclass(frozen=True)
class Parts:
    """`is_cut`: not even the first part fits, its end is missing."""

    texts: tuple[str, ...]
    is_cut: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def parts_that_fit(parts: Iterable[str], max_chars: int) -> Parts:
    """As many parts, joined by line feeds, as `max_chars` hold, one at least. Takes no more of them than needed."""
    fitting: list[str] = []
    chars = 0
    for part in parts:
        chars += len(part) + 1
        if chars > max_chars + 1:
            if fitting:
                break
            mark = f"\n[... cut: %d of {len(part)} characters shown]"
            room = max(max_chars - len(mark) - len(str(len(part))), 0)
            line_end = part.rfind("\n", 0, room)
            kept = line_end if line_end > 0 else room
            return Parts((part[:kept] + mark % kept,), is_cut=True)
        fitting.append(part)
    return Parts(tuple(fitting))
