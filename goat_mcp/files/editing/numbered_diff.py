"""Showing a change: numbered lines with context for a reader, and the same as hunks for a program.

Only the changed places are looked at, so that a change in a large file costs what the change is worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Any, Literal

from goat_mcp.files.documents.line_ends import (
    common_ends,
    count_line_ends,
    is_line_start,
    line_end,
    line_start,
    lines_between,
)
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.files.editing.matching import to_text
from goat_mcp.files.editing.replacing import ChangedSpan

EXACT_LINES = 400
"""Up to so many lines, both texts together, are aligned as well as possible."""
ALIGNED_LINES = 4_000
"""Up to so many lines are aligned by their rarer lines; more are compared in order, or only counted."""
CONTEXT_LINES = 4
MAX_DIFF_LINES = 200
MAX_LINE_BYTES = 500
"""Of a longer line only the part around the change is shown."""
MAX_START_LINES = 100
_SHOWN_BEFORE_CHANGE_BYTES = 100
_LINE_ENDS = (b"\n", b"\r")

Sign = Literal[" ", "-", "+"]


def changed_runs(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[ChangedSpan]:
    """The runs of lines that differ, in order; positions are line indexes."""
    head, tail = common_ends(old, new)
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    lines = len(old_middle) + len(new_middle)
    if lines <= ALIGNED_LINES:
        matcher = SequenceMatcher(None, old_middle, new_middle, autojunk=lines > EXACT_LINES)
        for tag, *run in matcher.get_opcodes():
            if tag != "equal":
                yield ChangedSpan(*(head + index for index in run))
    elif len(old_middle) == len(new_middle):
        yield from _differences_in_order(old_middle, new_middle, head)
    else:
        yield ChangedSpan(head, len(old) - tail, head, len(new) - tail)


def count_changed_lines(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """How many lines were added and removed. Over `ALIGNED_LINES`, lines that only moved are not counted."""
    head, tail = common_ends(old, new)
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(old) + len(new) > ALIGNED_LINES:
        before, after = Counter(old), Counter(new)
        return (after - before).total(), (before - after).total()
    runs = list(changed_runs(old, new))
    return sum(run.new_end - run.new_start for run in runs), sum(run.old_end - run.old_start for run in runs)


def _differences_in_order(old: Sequence[bytes], new: Sequence[bytes], head: int) -> Iterator[ChangedSpan]:
    start: int | None = None
    for index, (one, two) in enumerate(zip(old, new, strict=True), head):
        if one != two:
            start = index if start is None else start
        elif start is not None:
            yield ChangedSpan(start, index, start, index)
            start = None
    if start is not None:
        end = head + len(old)
        yield ChangedSpan(start, end, start, end)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line, without its terminator. Removed lines have the number they had, others the one they have now.

    `lacks_end`: it is the file's last and has no terminator, but its counterpart has one.
    """

    sign: Sign
    number: int
    text: str
    lacks_end: bool = False

    @property
    def shown(self) -> str:
        return f"{self.sign} {self.text}{' (no line end)' if self.lacks_end else ''}".rstrip()


@dataclass
class Hunk:
    """A run of lines around one or more changes. Starts are counted from 1."""

    old_start: int
    new_start: int
    lines: list[DiffLine] = field(default_factory=list[DiffLine])

    def facts(self) -> dict[str, Any]:
        return {
            "old_start": self.old_start,
            "old_lines": sum(line.sign != "+" for line in self.lines),
            "new_start": self.new_start,
            "new_lines": sum(line.sign != "-" for line in self.lines),
            "lines": [line.sign + line.text for line in self.lines],
        }


@dataclass(frozen=True)
class NumberedDiff:
    """What changed. `left_out` counts changed lines that are not in `hunks`; `start_lines` names the first changes."""

    hunks: Sequence[Hunk]
    additions: int
    deletions: int
    start_lines: Sequence[int]
    left_out: int

    def text(self) -> str:
        width = max((len(str(line.number)) for hunk in self.hunks for line in hunk.lines), default=1)
        blocks = [
            "\n".join(f"{line.number:>{width}} {line.shown}".rstrip() for line in hunk.lines) for hunk in self.hunks
        ]
        text = f"\n{'':>{width}} ...\n".join(blocks)
        return f"{text}\n({self.left_out} more changed lines are not shown)" if self.left_out else text

    def patch(self) -> list[dict[str, Any]]:
        return [hunk.facts() for hunk in self.hunks]


def diff(old: bytes, new: bytes, changes: Sequence[ChangedSpan]) -> NumberedDiff:
    """The numbered diff of two contents that differ in `changes` only, which are in order."""
    differ = _Differ(old, new)
    for block in _blocks(old, new, changes):
        for changed in _changed_parts(old, new, block):
            differ.add(changed)
    return differ.finished()


def _blocks(old: bytes, new: bytes, changes: Sequence[ChangedSpan]) -> Iterator[ChangedSpan]:
    """The whole lines around each change, by byte; changes that share lines, or touch, are joined."""
    pending: ChangedSpan | None = None
    for change in changes:
        start = line_start(old, change.old_start)
        done = -1 if pending is None else pending.old_end
        moved = change.new_start - change.old_start
        while start > done and not is_line_start(new, start + moved):
            start = line_start(old, start - 1)  # what lay between a CR and an LF is gone: they are one line end now
        end, new_end = _end_of_lines(old, new, change)
        if pending is not None and start <= done:
            first = min(start, pending.old_start)
            pending = ChangedSpan(first, end, pending.new_start - (pending.old_start - first), new_end)
            continue
        if pending is not None:
            yield pending
        pending = ChangedSpan(start, end, start + moved, new_end)
    if pending is not None:
        yield pending


def _end_of_lines(old: bytes, new: bytes, change: ChangedSpan) -> tuple[int, int]:
    """Where the lines around a change end, in both contents."""
    if is_line_start(old, change.old_end) and is_line_start(new, change.new_end):
        return change.old_end, change.new_end
    _, end = line_end(old, change.old_end)
    return end, change.new_end + (end - change.old_end)


def _changed_parts(old: bytes, new: bytes, block: ChangedSpan) -> Iterator[ChangedSpan]:
    """The lines of a block that really differ: what was sent as old and new text has lines in common."""
    old_lines = old[block.old_start : block.old_end].splitlines(keepends=True)
    new_lines = new[block.new_start : block.new_end].splitlines(keepends=True)
    old_at = list(accumulate(map(len, old_lines), initial=block.old_start))
    new_at = list(accumulate(map(len, new_lines), initial=block.new_start))
    for run in changed_runs(old_lines, new_lines):
        yield ChangedSpan(old_at[run.old_start], old_at[run.old_end], new_at[run.new_start], new_at[run.new_end])


class _Differ:
    """Takes the changed lines in order, counting lines as it goes."""

    def __init__(self, old: bytes, new: bytes) -> None:
        self._old = old
        self._new = new
        self._hunks: list[Hunk] = []
        self._room = MAX_DIFF_LINES
        self._changed_shown = 0
        self._old_number = 1
        self._new_number = 1
        self._done: int | None = None
        self._additions = 0
        self._deletions = 0
        self._start_lines: list[int] = []

    def add(self, block: ChangedSpan) -> None:
        self._context_before(block.old_start)
        removed = list(lines_between(self._old, block.old_start, block.old_end))
        added = list(lines_between(self._new, block.new_start, block.new_end))
        if len(self._start_lines) < MAX_START_LINES:
            self._start_lines.append(self._new_number)
        self._show_changed("-", self._old_number, removed, added)
        self._show_changed("+", self._new_number, added, removed)
        self._old_number += len(removed)
        self._new_number += len(added)
        self._deletions += len(removed)
        self._additions += len(added)
        self._done = block.old_end

    def finished(self) -> NumberedDiff:
        if self._done is not None:
            self._show_context(self._done, self._lines_after(self._done))
        left_out = self._additions + self._deletions - self._changed_shown
        return NumberedDiff(self._hunks, self._additions, self._deletions, self._start_lines, left_out)

    def _context_before(self, start: int) -> None:
        """The lines from the last changed one on: all of them if they are few, else a new hunk."""
        done = self._done or 0
        if self._done is not None:
            after = min(self._lines_after(done), start)
            self._show_context(done, after)
            done = after
        before = self._lines_before(start, done)
        if self._done is None or before > done:
            skipped = count_line_ends(self._old, done, before)
            self._old_number += skipped
            self._new_number += skipped
            if self._room:
                self._hunks.append(Hunk(self._old_number, self._new_number))
        self._show_context(before, start)

    def _lines_before(self, start: int, limit: int) -> int:
        for _ in range(CONTEXT_LINES):
            if start <= limit:
                break
            start = line_start(self._old, start - 1)
        return start

    def _lines_after(self, start: int) -> int:
        for _ in range(CONTEXT_LINES):
            if start >= len(self._old):
                break
            _, start = line_end(self._old, start)
        return start

    def _show_context(self, start: int, end: int) -> None:
        for line in lines_between(self._old, start, end):
            self._show(DiffLine(" ", self._new_number, _shown(line, 0)))
            self._old_number += 1
            self._new_number += 1

    def _show_changed(self, sign: Sign, number: int, lines: list[bytes], others: list[bytes]) -> None:
        for index, line in enumerate(lines[: self._room]):
            other = others[index] if index < len(others) else b""
            lacks_end = not line.endswith(_LINE_ENDS) and bool(others) and others[-1].endswith(_LINE_ENDS)
            self._show(DiffLine(sign, number + index, _shown(line, _common_head(line, other)), lacks_end))
            self._changed_shown += 1

    def _show(self, line: DiffLine) -> None:
        if self._room:
            self._hunks[-1].lines.append(line)
            self._room -= 1


def _common_head(one: bytes, two: bytes) -> int:
    """How many bytes two lines begin with alike; only worked out for lines too long to be shown whole."""
    if max(len(one), len(two)) <= MAX_LINE_BYTES:
        return 0
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _shown(line: bytes, focus: int) -> str:
    """A line for a reader: without its terminator, hidden characters visible, cut around `focus` if it is long."""
    text = line.rstrip(b"\r\n")
    if len(text) <= MAX_LINE_BYTES:
        return make_visible(to_text(text))
    start = max(0, min(focus - _SHOWN_BEFORE_CHANGE_BYTES, len(text) - MAX_LINE_BYTES))
    part = text[start : start + MAX_LINE_BYTES].decode("utf-8", "ignore")
    before = "..." if start else ""
    after = "..." if start + MAX_LINE_BYTES < len(text) else ""
    return f"{before}{make_visible(part)}{after} [line cut: {MAX_LINE_BYTES} of {len(text)} bytes shown]"
