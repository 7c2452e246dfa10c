"""Showing a change: numbered lines with context for a reader, and the same as hunks for a program.

Only the changed places are looked at, so that a change in a large file costs what the change is worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

from goat_mcp.documents.visible_text import make_visible
from goat_mcp.editing.changes import Change
from goat_mcp.editing.lines import count_line_ends, is_line_start, line_end, line_start, lines_between
from goat_mcp.editing.matching import to_text

CONTEXT_LINES = 4
MAX_DIFF_LINES = 200
MAX_LINE_BYTES = 500
"""Of a longer line only the part around the change is shown."""
MAX_START_LINES = 100
MAX_COMPARED_LINES = 400
"""Changed places with more lines are compared line by line, or counted, instead of aligned."""
_SHOWN_BEFORE_CHANGE_BYTES = 100

Sign = Literal[" ", "-", "+"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line, without its terminator. Removed lines have the number they had, others the one they have now."""

    sign: Sign
    number: int
    text: str


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
            "\n".join(f"{line.number:>{width}} {line.sign} {line.text}".rstrip() for line in hunk.lines)
            for hunk in self.hunks
        ]
        if self.left_out:
            blocks.append(f"({self.left_out} more changed lines are not shown)")
        return f"\n{'':>{width}} ...\n".join(blocks)

    def patch(self) -> list[dict[str, Any]]:
        return [hunk.facts() for hunk in self.hunks]


@dataclass(frozen=True, slots=True)
class _Block:
    """Whole lines around changes that share lines: `old[old_start:old_end]` against `new[new_start:new_end]`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def diff(old: bytes, new: bytes, changes: Sequence[Change]) -> NumberedDiff:
    """The numbered diff of two contents that differ in `changes` only, which are in order."""
    return _Differ(old, new).run(_blocks(old, new, changes))


def _blocks(old: bytes, new: bytes, changes: Sequence[Change]) -> Iterator[_Block]:
    pending: _Block | None = None
    for change in changes:
        block = _whole_lines(old, new, change)
        if pending is None:
            pending = block
        elif block.old_start <= pending.old_end:
            pending = _Block(pending.old_start, block.old_end, pending.new_start, block.new_end)
        else:
            yield pending
            pending = block
    if pending is not None:
        yield pending


def _whole_lines(old: bytes, new: bytes, change: Change) -> _Block:
    start = line_start(old, change.old_start)
    new_start = change.new_start - (change.old_start - start)
    if is_line_start(old, change.old_end) and is_line_start(new, change.new_end):
        return _Block(start, change.old_end, new_start, change.new_end)
    _, end = line_end(old, change.old_end)
    return _Block(start, end, new_start, change.new_end + (end - change.old_end))


class _Differ:
    """Goes through the blocks once, counting lines as it goes."""

    def __init__(self, old: bytes, new: bytes) -> None:
        self._old = old
        self._new = new
        self._hunks: list[Hunk] = []
        self._shown = 0
        self._old_number = 1
        self._new_number = 1
        self._done = 0
        self._additions = 0
        self._deletions = 0
        self._changed_shown = 0
        self._start_lines: list[int] = []

    def run(self, blocks: Iterator[_Block]) -> NumberedDiff:
        last_end = None
        for block in blocks:
            if last_end is not None and self._is_full():
                self._count(block)
                continue
            self._context_between(last_end, block.old_start)
            self._block(block)
            last_end = block.old_end
        if last_end is not None:
            self._context_after(last_end)
        changed = self._additions + self._deletions
        return NumberedDiff(
            self._hunks, self._additions, self._deletions, self._start_lines, changed - self._changed_shown
        )

    def _is_full(self) -> bool:
        return self._shown >= MAX_DIFF_LINES

    def _context_between(self, last_end: int | None, start: int) -> None:
        """The lines from the last block to the next one: all of them where they are few, else a gap."""
        if last_end is not None:
            gap = count_line_ends(self._old, last_end, start)
            if gap <= 2 * CONTEXT_LINES:
                self._add_context(last_end, start)
                return
            self._context_after(last_end)
        before = self._lines_before(start, 0 if last_end is None else last_end)
        skipped = count_line_ends(self._old, self._done, before)
        self._old_number += skipped
        self._new_number += skipped
        self._done = before
        self._hunks.append(Hunk(self._old_number, self._new_number))
        self._add_context(before, start)

    def _lines_before(self, start: int, limit: int) -> int:
        for _ in range(CONTEXT_LINES):
            if start <= limit:
                break
            start = line_start(self._old, start - 1)
        return start

    def _context_after(self, start: int) -> None:
        end = start
        for _ in range(CONTEXT_LINES):
            if end < len(self._old):
                _, end = line_end(self._old, end)
        self._add_context(start, end)

    def _add_context(self, start: int, end: int) -> None:
        for line in lines_between(self._old, start, end):
            self._add(" ", self._new_number, line, 0)
            self._old_number += 1
            self._new_number += 1
        self._done = end

    def _block(self, block: _Block) -> None:
        old = self._old[block.old_start : block.old_end].splitlines(keepends=True)
        new = self._new[block.new_start : block.new_end].splitlines(keepends=True)
        for tag, (old_start, old_end), (new_start, new_end) in _operations(old, new):
            if tag == "equal":
                for line in old[old_start:old_end]:
                    self._add(" ", self._new_number, line, 0)
                    self._old_number += 1
                    self._new_number += 1
                continue
            if len(self._start_lines) < MAX_START_LINES:
                self._start_lines.append(self._new_number)
            removed, added = old[old_start:old_end], new[new_start:new_end]
            focus = [_common_head(one, two) for one, two in zip(removed, added, strict=False)]
            for index, line in enumerate(removed):
                self._add("-", self._old_number, line, focus[index] if index < len(focus) else 0)
                self._old_number += 1
            for index, line in enumerate(added):
                self._add("+", self._new_number, line, focus[index] if index < len(focus) else 0)
                self._new_number += 1
            self._deletions += len(removed)
            self._additions += len(added)
        self._done = block.old_end

    def _count(self, block: _Block) -> None:
        """A block there is no room for. Its lines only count."""
        additions, deletions = count_changed_lines(
            self._old[block.old_start : block.old_end].splitlines(keepends=True),
            self._new[block.new_start : block.new_end].splitlines(keepends=True),
        )
        skipped = count_line_ends(self._old, self._done, block.old_start)
        if len(self._start_lines) < MAX_START_LINES:
            self._start_lines.append(self._new_number + skipped)
        self._old_number += skipped + count_line_ends(self._old, block.old_start, block.old_end)
        self._new_number += skipped + count_line_ends(self._new, block.new_start, block.new_end)
        self._done = block.old_end
        self._additions += additions
        self._deletions += deletions

    def _add(self, sign: Sign, number: int, line: bytes, focus: int) -> None:
        if self._is_full():
            return
        self._hunks[-1].lines.append(DiffLine(sign, number, _shown(line, focus)))
        self._shown += 1
        self._changed_shown += sign != " "


_Operation = tuple[str, tuple[int, int], tuple[int, int]]


def _operations(old: list[bytes], new: list[bytes]) -> Iterator[_Operation]:
    """Equal and changed runs, in order. Long blocks are compared line by line where they have as many lines."""
    if len(old) + len(new) <= MAX_COMPARED_LINES:
        for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, new, False).get_opcodes():
            yield tag, (old_start, old_end), (new_start, new_end)
        return
    if len(old) != len(new):
        head, tail = _common_ends(old, new)
        old_end, new_end = len(old) - tail, len(new) - tail
        yield "equal", (0, head), (0, head)
        yield "replace", (head, old_end), (head, new_end)
        yield "equal", (old_end, len(old)), (new_end, len(new))
        return
    for index, (one, two) in enumerate(zip(old, new, strict=True)):
        run = (index, index + 1)
        yield "equal" if one == two else "replace", run, run


def count_changed_lines(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """How many lines were added and removed. Over `MAX_COMPARED_LINES`, lines that moved are not counted."""
    head, tail = _common_ends(old, new)
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(old) + len(new) <= 2 * MAX_COMPARED_LINES:
        same = sum(block.size for block in SequenceMatcher(None, old, new, False).get_matching_blocks())
        return len(new) - same, len(old) - same
    before, after = Counter(old), Counter(new)
    return (after - before).total(), (before - after).total()


def _common_ends(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """How many lines at the head, and of the rest at the tail, are the same."""
    shorter = min(len(old), len(new))
    head = next((index for index, (one, two) in enumerate(zip(old, new, strict=False)) if one != two), shorter)
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


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
