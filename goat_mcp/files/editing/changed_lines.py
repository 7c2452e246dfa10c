"""Which lines of two texts differ, with bounded effort. How that is shown lives in `numbered_diff`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

EXACT_LINES = 400
"""Up to so many lines, both texts together, are aligned as well as possible."""
ALIGNED_LINES = 4_000
"""Up to so many lines are aligned by their rarer lines; more are compared in order, or only counted."""


class ChangedRun(NamedTuple):
    """Lines `old_start:old_end` of the one text stand where `new_start:new_end` of the other do."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changed_runs(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[ChangedRun]:
    """The runs that differ, in order."""
    head, tail = _common_ends(old, new)
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    lines = len(old_middle) + len(new_middle)
    if lines <= ALIGNED_LINES:
        matcher = SequenceMatcher(None, old_middle, new_middle, autojunk=lines > EXACT_LINES)
        for tag, *run in matcher.get_opcodes():
            if tag != "equal":
                yield ChangedRun(*(head + index for index in run))
    elif len(old_middle) == len(new_middle):
        yield from _differences_in_order(old_middle, new_middle, head)
    else:
        yield ChangedRun(head, len(old) - tail, head, len(new) - tail)


def count_changed_lines(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """How many lines were added and removed. Over `ALIGNED_LINES`, lines that only moved are not counted."""
    head, tail = _common_ends(old, new)
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(old) + len(new) > ALIGNED_LINES:
        before, after = Counter(old), Counter(new)
        return (after - before).total(), (before - after).total()
    runs = list(changed_runs(old, new))
    return sum(run.new_end - run.new_start for run in runs), sum(run.old_end - run.old_start for run in runs)


def _differences_in_order(old: Sequence[bytes], new: Sequence[bytes], head: int) -> Iterator[ChangedRun]:
    start: int | None = None
    for index, (one, two) in enumerate(zip(old, new, strict=True), head):
        if one != two:
            start = index if start is None else start
        elif start is not None:
            yield ChangedRun(start, index, start, index)
            start = None
    if start is not None:
        end = head + len(old)
        yield ChangedRun(start, end, start, end)


def _common_ends(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """How many lines at the head, and of the rest at the tail, are the same."""
    shorter = min(len(old), len(new))
    head = next((index for index, (one, two) in enumerate(zip(old, new, strict=False)) if one != two), shorter)
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail
