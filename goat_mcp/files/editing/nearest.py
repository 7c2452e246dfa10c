"""What to show when the old text is not found: the region of the file that is most like it.

The search has a time limit, and looks only where words of the old text are. Similarity never decides an edit.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from goat_mcp.files.documents.line_ends import count_line_ends, line_end, line_start, lines_between, split_lines
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.files.editing.matching import BLANKS, fold, to_bytes, to_text

SEARCH_LIMIT_S = 1.0
MIN_SIMILARITY = 0.5
MAX_WORDS = 12
MAX_CANDIDATES = 40
MAX_WANTED_LINES = 60
"""Only so many lines of the old text are compared and shown."""
_MAX_LINE_CHARS = 300
_MAX_COMPARED_WORDS = 600
_WORDS = re.compile(r"\w+|[^\w\s]")
_SCAN_BYTES = 256 * 1024
_VISIBLE_BLANKS = str.maketrans({" ": "\u00b7", "\t": "\u2192", **dict.fromkeys("\u00a0\u2007\u202f", "\u237d")})


@dataclass(frozen=True)
class Region:
    """Lines of the file, counted from 1, that are like the wanted ones. `similarity` is from 0 to 1."""

    first_line: int
    lines: Sequence[str]
    wanted: Sequence[str]
    similarity: float

    @property
    def last_line(self) -> int:
        return self.first_line + len(self.lines) - 1

    def diff(self) -> str:
        """Wanted lines (-) against the file's (+), with blanks and tabs visible."""
        width = len(str(self.last_line))
        rows: list[str] = []
        matcher = SequenceMatcher(None, self.wanted, self.lines, autojunk=False)
        for tag, start, end, file_start, file_end in matcher.get_opcodes():
            if tag != "equal":
                rows += (f"{'':>{width}} - {visible_blanks(line)}" for line in self.wanted[start:end])
            sign = " " if tag == "equal" else "+"
            rows += (
                f"{self.first_line + index:>{width}} {sign} {visible_blanks(self.lines[index])}"
                for index in range(file_start, file_end)
            )
        return "\n".join(rows)

    def cause(self) -> str:
        """Why lines that look alike differ, if it is only blanks, quotes or dashes; else empty."""
        if len(self.lines) != len(self.wanted):
            return ""
        pairs = [(typed, found) for typed, found in zip(self.wanted, self.lines, strict=True) if typed != found]
        if any(fold(typed) != fold(found) for typed, found in pairs):
            return ""
        if any("\t" in found and "\t" not in typed for typed, found in pairs):
            return "the file has tabs where old_string has spaces"
        if any("\t" in typed and "\t" not in found for typed, found in pairs):
            return "the file has spaces where old_string has tabs"
        if all(typed.strip(BLANKS) == found.strip(BLANKS) for typed, found in pairs):
            return "only the blanks at the beginning or end of lines differ"
        return "the quotes, dashes or no-break spaces differ"


@dataclass(frozen=True)
class Nearest:
    """The outcome of a search. `lines_searched` is None when the whole file was searched."""

    region: Region | None
    lines_searched: int | None = None


def visible_blanks(line: str) -> str:
    shown = make_visible(line[:_MAX_LINE_CHARS].replace("\t", "\0")).replace("\\x00", "\t").translate(_VISIBLE_BLANKS)
    return shown if len(line) <= _MAX_LINE_CHARS else f"{shown}... [{len(line)} characters]"


def nearest_region(content: bytes, wanted: str, *, limit_s: float = SEARCH_LIMIT_S) -> Nearest:
    """The lines of `content` most like `wanted`, if any are at least half alike."""
    return _Search(content, wanted, limit_s).run()


class _Search:
    def __init__(self, content: bytes, wanted: str, limit_s: float) -> None:
        self._content = content
        self._wanted = [line.rstrip("\r\n") for line in split_lines(wanted)[:MAX_WANTED_LINES]]
        self._limit_s = limit_s
        self._started_s = time.monotonic()
        self._scanned = 0

    def run(self) -> Nearest:
        best = self._best(self._starts_by_words(until=0.5), until=0.75)
        if best is None:
            best = self._best(self._starts_by_likeness(until=0.9), until=1.0)
        searched = None
        if self._scanned < len(self._content):
            searched = count_line_ends(self._content, 0, self._scanned)
        if best is None:
            return Nearest(None, searched)
        similarity, start = best
        first_line = count_line_ends(self._content, 0, start) + 1
        return Nearest(Region(first_line, self._lines_at(start), self._wanted, similarity), searched)

    def _best(self, starts: list[int], *, until: float) -> tuple[float, int] | None:
        """The most similar region and where it starts. At least one is compared, however late it is."""
        best: tuple[float, int] | None = None
        for start in dict.fromkeys(starts):
            similarity = _similarity(self._wanted, self._lines_at(start))
            if similarity >= MIN_SIMILARITY and (best is None or similarity > best[0]):
                best = (similarity, start)
            if self._is_after(until):
                break
        return best

    def _is_after(self, share: float) -> bool:
        """Whether so much of the time is spent."""
        return time.monotonic() > self._started_s + share * self._limit_s

    def _starts_by_words(self, *, until: float) -> list[int]:
        """Where the region may begin, the most promising first: words of the old text vote for it."""
        words: dict[bytes, int] = {}
        for index, line in enumerate(self._wanted):
            for word in re.findall(r"\w+", line):
                words.setdefault(to_bytes(word), index)
        chosen = sorted(words, key=len, reverse=True)[:MAX_WORDS]
        if not chosen:
            return []
        pattern = re.compile(rb"|".join(map(re.escape, chosen)))
        votes: Counter[int] = Counter()
        voted: dict[int, set[bytes]] = {}
        for at in self._blocks(until):
            for found in pattern.finditer(self._content, at, min(at + _SCAN_BYTES, len(self._content))):
                start = line_start(self._content, found.start())
                seen = voted.setdefault(start, set())
                if found[0] not in seen:
                    seen.add(found[0])
                    votes[start] += len(found[0])
            if len(voted) > 50_000:  # keep the best, forget the crowd
                kept = dict(votes.most_common(MAX_CANDIDATES))
                votes = Counter(kept)
                voted = {start: voted[start] for start in kept}
        return [
            self._lines_up(start, words[max(voted[start], key=len)]) for start, _ in votes.most_common(MAX_CANDIDATES)
        ]

    def _blocks(self, until: float) -> Iterator[int]:
        """Where to go on searching, block by block, until the time is up."""
        for at in range(0, len(self._content), _SCAN_BYTES):
            yield at
            self._scanned = max(self._scanned, min(at + _SCAN_BYTES, len(self._content)))
            if self._is_after(until):
                return

    def _starts_by_likeness(self, *, until: float) -> list[int]:
        """For a word that is misspelt: lines like the longest wanted one."""
        index, wanted = max(enumerate(self._wanted), key=lambda line: len(line[1]), default=(0, ""))
        matcher = SequenceMatcher(None, b=fold(wanted)[:_MAX_LINE_CHARS], autojunk=False)
        liked: list[tuple[float, int]] = []
        at = 0
        for line in lines_between(self._content, 0, len(self._content)):
            matcher.set_seq1(fold(to_text(line[: 4 * _MAX_LINE_CHARS]).rstrip("\r\n"))[:_MAX_LINE_CHARS])
            if matcher.real_quick_ratio() > MIN_SIMILARITY and (ratio := matcher.quick_ratio()) > MIN_SIMILARITY:
                liked.append((ratio, at))
            at += len(line)
            if self._is_after(until):
                break
        self._scanned = max(self._scanned, at)
        return [
            self._lines_up(at, index) for _, at in sorted(liked, key=lambda line: (-line[0], line[1]))[:MAX_CANDIDATES]
        ]

    def _lines_up(self, start: int, count: int) -> int:
        for _ in range(count):
            if start == 0:
                break
            start = line_start(self._content, start - 1)
        return start

    def _lines_at(self, start: int) -> list[str]:
        lines: list[str] = []
        for _ in self._wanted:
            if start >= len(self._content):
                break
            end, after = line_end(self._content, start)
            lines.append(to_text(self._content[start : min(end, start + 4 * _MAX_LINE_CHARS)]))
            start = after
        return lines


def _similarity(wanted: Sequence[str], found: Sequence[str]) -> float:
    """How alike two texts are, from 0 to 1, blanks and quotes aside: by character if short, else by word."""
    one = "\n".join(fold(line) for line in wanted)
    two = "\n".join(fold(line) for line in found)
    if len(one) + len(two) <= 2 * _MAX_LINE_CHARS:
        return SequenceMatcher(None, one, two, autojunk=False).ratio()
    words = [_WORDS.findall(text)[:_MAX_COMPARED_WORDS] for text in (one, two)]
    return SequenceMatcher(None, *words, autojunk=False).ratio()
