"""Replacing parts of a file's content, and remembering which parts of the original became which of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replacement:
    """`content[start:end]` is to become `text`."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Change:
    """`old[old_start:old_end]` became `new[new_start:new_end]`; everything between changes is the same in both."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int

    @property
    def growth(self) -> int:
        return (self.new_end - self.new_start) - (self.old_end - self.old_start)


def replaced(content: bytes, replacements: Sequence[Replacement]) -> tuple[bytes, list[Change]]:
    """The new content, and what changed. Replacements come in order and do not overlap."""
    whole = memoryview(content)  # slices of it cost no copy, which counts for large files
    pieces: list[bytes | memoryview] = []
    changes: list[Change] = []
    done = grown = 0
    for part in replacements:
        pieces += (whole[done : part.start], part.text)
        change = Change(part.start, part.end, part.start + grown, part.start + grown + len(part.text))
        changes.append(change)
        grown += change.growth
        done = part.end
    pieces.append(whole[done:])
    return b"".join(pieces), changes


def compose(first: Sequence[Change], second: Sequence[Change]) -> list[Change]:
    """Two rounds of changes as one. `second`'s old side is `first`'s new side."""
    composed: list[Change] = []
    one = two = 0
    first_growth = second_growth = 0
    while one < len(first) or two < len(second):
        takes_first = two == len(second) or (one < len(first) and first[one].new_start <= second[two].old_start)
        start = end = first[one].new_start if takes_first else second[two].old_start
        growth_before = (first_growth, second_growth)
        while True:  # changes that touch in the middle text become one
            if one < len(first) and first[one].new_start <= end:
                end = max(end, first[one].new_end)
                first_growth += first[one].growth
                one += 1
            elif two < len(second) and second[two].old_start <= end:
                end = max(end, second[two].old_end)
                second_growth += second[two].growth
                two += 1
            else:
                break
        composed.append(
            Change(start - growth_before[0], end - first_growth, start + growth_before[1], end + second_growth)
        )
    return composed
