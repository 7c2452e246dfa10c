"""Replacing parts of a file's content: which bytes go where, and which part of the result each changed part became."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from goat_mcp.files.documents.line_ends import FileText, line_end, line_start, split_lines
from goat_mcp.files.editing.matching import Hit, Matches, to_bytes, to_text
from goat_mcp.files.editing.replacement_text import MatchPosition, replacement_text


@dataclass(frozen=True, slots=True)
class Replacement:
    """`content[start:end]` is to become `text`."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True, slots=True)
class ChangedSpan:
    """`old[old_start:old_end]` became `new[new_start:new_end]`; everything between changes is the same in both."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int

    @property
    def growth(self) -> int:
        return (self.new_end - self.new_start) - (self.old_end - self.old_start)


def replace_parts(content: bytes, replacements: Sequence[Replacement]) -> tuple[bytes, list[ChangedSpan]]:
    """The new content, and what changed. Replacements come in order and do not overlap."""
    whole = memoryview(content)  # slices of it cost no copy, which counts for large files
    pieces: list[bytes | memoryview] = []
    changes: list[ChangedSpan] = []
    done = grown = 0
    for part in replacements:
        pieces += (whole[done : part.start], part.text)
        change = ChangedSpan(part.start, part.end, part.start + grown, part.start + grown + len(part.text))
        changes.append(change)
        grown += change.growth
        done = part.end
    pieces.append(whole[done:])
    return b"".join(pieces), changes


def compose_changes(first: Sequence[ChangedSpan], second: Sequence[ChangedSpan]) -> list[ChangedSpan]:
    """Two rounds of changes as one. `second`'s old side is `first`'s new side."""
    composed: list[ChangedSpan] = []
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
            ChangedSpan(start - growth_before[0], end - first_growth, start + growth_before[1], end + second_growth)
        )
    return composed


_NEARBY_BYTES = 4096
"""How far around a hit to look for how the file indents."""
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_LINE_FEEDS = re.compile(r"\r\n|\n")
_SINGLE_RETURN = re.compile(r"\r(?!\n)")


def replace_found(text: FileText, found: Matches, old: str, new: str) -> tuple[bytes, list[ChangedSpan]]:
    """The content with `new` at every hit of `old`, and what changed."""
    same_everywhere = _same_everywhere(text, old, new) if found.tier == 1 else None
    if same_everywhere is not None and found.needle is not None and len(found.hits) < found.count:
        return _all_at_once(text.data, found.hits[0].start, found.needle, same_everywhere)
    parts = [
        Replacement(
            hit.start,
            hit.end,
            _adapted(text.data, hit, found, old, new) if same_everywhere is None else same_everywhere,
        )
        for hit in found.every_hit(text.data)
    ]
    return replace_parts(text.data, parts)


def _same_everywhere(text: FileText, old: str, new: str) -> bytes | None:
    """The new text in bytes, unless its line ends depend on where it goes: inserted lines end like their neighbours."""
    if not _LINE_ENDS.search(new) or text.line_end == b"":
        return to_bytes(new)
    if text.line_end is None:
        return None
    end = text.line_end.decode()
    # A single CR is data, unless the old text or the file has single CRs for line ends too.
    ends = _LINE_ENDS if end == "\r" or _SINGLE_RETURN.search(old) else _LINE_FEEDS
    return to_bytes(ends.sub(lambda _: end, new))


def _all_at_once(content: bytes, first: int, needle: bytes, text: bytes) -> tuple[bytes, list[ChangedSpan]]:
    """More hits than are worth listing: what lies from the first to the last of them counts as changed."""
    result = content.replace(needle, text)
    end = content.rfind(needle) + len(needle)
    return result, [ChangedSpan(first, end, first, len(result) - (len(content) - end))]


def _adapted(content: bytes, hit: Hit, found: Matches, old: str, new: str) -> bytes:
    file_lines, old_lines = split_lines(to_text(content[hit.start : hit.end])), split_lines(old)
    if len(file_lines) < len(old_lines):
        file_lines.append("")  # blanks at the end of the old text stand for an empty line
    place = MatchPosition(
        file_lines,
        old_lines,
        _line_end_near(content, hit),
        _lines_near(content, hit) if found.tier == 3 else (),
    )
    return to_bytes(replacement_text(place, split_lines(new), reindent=found.tier == 3))


def _line_end_near(content: bytes, hit: Hit) -> str | None:
    """The terminator of the line a hit ends in, else of the one before; None if there is no other line."""
    end, after = line_end(content, max(hit.start, hit.end - 1))
    if after == end:
        after = line_start(content, hit.start)
        end, after = line_end(content, max(0, after - 1))
    return content[end:after].decode() or None


def _lines_near(content: bytes, hit: Hit) -> list[str]:
    start = max(0, hit.start - _NEARBY_BYTES)
    return split_lines(to_text(content[start : hit.end + _NEARBY_BYTES]))[1 if start else 0 :]
