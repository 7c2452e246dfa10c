"""Searching file contents: which files match, in what order, and one page of what is in them.

Two passes if lines are asked for: the files that match, newest first, then the lines of as many of them as the
page needs. So the newest come first without holding what nobody asked to see.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.search.engine import Search
from goat_mcp.files.search.priority import PriorityOrder
from goat_mcp.files.search.query import GroupEnd, Query, ResultLine

Mode = Literal["files_with_matches", "content", "count"]
Order = PriorityOrder | None
"""Of files: by kind and then by matches; None: newest first."""

MAX_FILES_KEPT = 200_000
"""With no limit asked for, no more files than this are held and shown."""
MAX_PAGE_CHARS = 8 * 1024 * 1024
_FILES_PER_RUN = 500
_MAX_PATHS_CHARS = 64 * 1024 if platform.SYSTEM != "windows" else 24 * 1024
"""Of one command line; Windows takes 32,767 characters with quotes and blanks."""
_LINES_COUNTED_PAST_PAGE = 5_000
_FIRST_PASS_SHARE = 0.8
_MAX_TERMS = 10
_MAX_HALVES = 20
_SECOND_LOOK_S = 2.0
_SECOND_LOOK_FILES = 1000
_TERM_MARK = re.compile(r"\\?\|")
_ESCAPED_OR_CLASS = re.compile(r"\\.|\[[^]]*\]?")


@dataclass(frozen=True)
class Page:
    """`limit` 0 is everything. `counts_matches`: the lines around a match are not counted, and come with it."""

    offset: int
    limit: int
    counts_matches: bool = False

    @property
    def end(self) -> int | None:
        return self.offset + self.limit if self.limit else None

    def counts(self, line: ResultLine) -> bool:
        return line.is_match or not self.counts_matches

    def holds(self, at: int) -> bool:
        """Whether what is counted as number `at`, from 0, is on it."""
        return self.offset <= at and (self.end is None or at < self.end)


@dataclass(frozen=True)
class RankedFile:
    path: str
    count: int


@dataclass
class ContentMatches:
    """One page of an answer, and what is known about the rest.

    `total` counts what the page counts (files or lines); `is_total_exact` False means at least so many.
    """

    files: list[RankedFile] = field(default_factory=list[RankedFile])
    lines: list[ResultLine | GroupEnd] = field(default_factory=list["ResultLine | GroupEnd"])
    num_files: int = 0
    num_matches: int = 0
    total: int = 0
    is_total_exact: bool = True
    timed_out: bool = False
    terms: tuple[str, ...] = ()


def find(search: Search, query: Query, mode: Mode, order: Order, page: Page) -> ContentMatches:
    """Search; if a pattern with `|` finds nothing, search each of its terms (source: goa, "Fuzzy fallback").

    Raises `ToolError(PATTERN)`.
    """
    found = _find(search, query, mode, order, page)
    terms = _terms(query)
    if found.num_files or not terms or search.deadline.is_over:
        return found
    # ripgrep joins patterns before it reads them, so two broken halves could pass for a whole
    literal = not all(map(_is_balanced, terms))
    try:
        by_term = _find(search, replace(query, patterns=terms, literal=literal), mode, order, page)
    except ToolError as refused:
        if refused.code is not ErrorCode.PATTERN:
            raise
        by_term = _find(search, replace(query, patterns=terms, literal=True), mode, order, page)
    return replace(by_term, terms=terms) if by_term.num_files else found


def count_ignored(search: Search, query: Query) -> tuple[int, bool]:
    """How many files match that ignore rules hide, and whether that is all. A short look only."""
    if search.ignored == ():
        return 0, True
    entries = search.ignored or ()
    if sum(map(len, entries)) > _MAX_PATHS_CHARS:
        entries = ()  # more than a command line holds: look everywhere
    look = search.part(_SECOND_LOOK_S)
    count = 0
    for paths in look.matching(replace(query, include_ignored=True), entries):
        count += len(paths)
        if count >= _SECOND_LOOK_FILES:
            return count, False
    return count, not look.deadline.timed_out


def _terms(query: Query) -> tuple[str, ...]:
    terms = [_bare(term) for pattern in query.patterns for term in _TERM_MARK.split(pattern)]
    kept = tuple(dict.fromkeys(term for term in terms if term))[:_MAX_TERMS]
    return kept if len(terms) > 1 else ()


def _bare(term: str) -> str:
    """A term without blanks around it and without the half of a group it was cut out of: `(?:alpha` -> `alpha`."""
    bare = term.strip()
    for _ in range(_MAX_HALVES):
        if _is_balanced(bare):
            break
        for opening in ("(?:", "("):
            if bare.startswith(opening):
                bare = bare[len(opening) :].strip()
                break
        else:
            if not bare.endswith(")"):
                break
            bare = bare[:-1].strip()
    return bare


def _is_balanced(term: str) -> bool:
    """Whether as many groups open as close; what is escaped or in a class opens and closes none."""
    plain = _ESCAPED_OR_CLASS.sub("", term)
    return plain.count("(") == plain.count(")")


def _find(search: Search, query: Query, mode: Mode, order: Order, page: Page) -> ContentMatches:
    if mode == "content" and not search.target.is_directory:
        return _lines(search, query, search.lines(query), page)
    first_pass = search.part(search.deadline.left_s * _FIRST_PASS_SHARE) if mode == "content" else search
    found = _rank(first_pass, query, mode, order, page)
    found.timed_out = first_pass.deadline.timed_out
    if mode == "content":
        search.adopt(first_pass)
        unread = deque(file.path for file in found.files)
        lines = _lines(search, query, _lines_of(search, query, unread, page), page)
        lines.num_files = found.num_files
        lines.total = max(lines.total, found.num_files)
        lines.timed_out |= found.timed_out
        lines.is_total_exact &= not found.timed_out and not unread and found.num_files <= len(found.files)
        return lines
    found.files = found.files[page.offset : page.end]
    found.total = found.num_files
    found.is_total_exact = not found.timed_out
    return found


def _rank(search: Search, query: Query, mode: Mode, order: Order, page: Page) -> ContentMatches:
    """The first files in their order, as many as the page can need: each has at least one line."""
    needed = MAX_FILES_KEPT if page.end is None else page.end + (_FILES_PER_RUN if mode == "content" else 0)
    matches = ContentMatches()

    def entries() -> Iterator[tuple[int, int, str, int]]:
        for batch in batches:
            matches.num_files += len(batch)
            for path, count in batch:
                matches.num_matches += count
                if order is not None:
                    yield order.tier(path), -count, path, count
                else:
                    yield -search.mtime_ns(path), 0, path, count

    is_counting = mode == "count" or order is not None
    with closing(search.counts(query) if is_counting else _uncounted(search, query)) as batches:
        first = heapq.nsmallest(min(needed, MAX_FILES_KEPT), entries())
    matches.files = [RankedFile(path, count) for _, _, path, count in first]
    return matches


def _uncounted(search: Search, query: Query) -> Generator[list[tuple[str, int]]]:
    for paths in search.matching(query):
        yield [(path, 0) for path in paths]


def _lines_of(search: Search, query: Query, unread: deque[str], page: Page) -> Generator[ResultLine | GroupEnd]:
    """Lines of the first of `unread`, which are taken out, until there are at least as many as the page needs."""
    most = page.end
    num_lines = 0
    while unread and (most is None or num_lines < most) and not search.deadline.is_over:
        # Each has a line at least; and one command line has an end: 128 KiB fits every system
        num_paths = _FILES_PER_RUN if most is None else min(_FILES_PER_RUN, most - num_lines)
        paths: list[str] = []
        size = 0
        while unread and len(paths) < num_paths and size < _MAX_PATHS_CHARS:
            paths.append(unread.popleft())
            size += len(paths[-1])
        for item in search.lines(query, paths):
            num_lines += isinstance(item, ResultLine) and page.counts(item)
            yield item
        yield GroupEnd()


def _lines(search: Search, query: Query, stream: Generator[ResultLine | GroupEnd], page: Page) -> ContentMatches:
    """One page of lines. Counts a little past it, then stops ripgrep."""
    found = ContentMatches()
    has_groups = bool(query.before or query.after)
    is_new_group = False
    chars = 0
    last_match: ResultLine | None = None
    with closing(stream):
        for item in stream:
            if isinstance(item, GroupEnd):
                is_new_group = has_groups
                continue
            if page.holds(found.total) or (not page.counts(item) and _follows(item, last_match, query.after)):
                if is_new_group and found.lines:
                    found.lines.append(GroupEnd())
                found.lines.append(item)
                found.num_matches += item.is_match
                last_match = item if item.is_match else last_match
                chars += len(item.text) + len(item.path)
            is_new_group = False
            found.total += page.counts(item)
            if chars > MAX_PAGE_CHARS or (page.end and found.total >= page.end + _LINES_COUNTED_PAST_PAGE):
                found.is_total_exact = False
                break
    found.num_files = len({line.path for line in found.lines if isinstance(line, ResultLine)}) or int(found.total > 0)
    found.timed_out = search.deadline.timed_out
    found.is_total_exact &= not found.timed_out
    return found


def _follows(line: ResultLine, match: ResultLine | None, after: int) -> bool:
    """Whether it is one of the `after` lines that belong to the match."""
    return match is not None and line.path == match.path and 0 < line.number - match.number <= after
