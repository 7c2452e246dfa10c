"""Putting new text at the hits of the old one: which bytes exactly go where."""

from __future__ import annotations

import re

from goat_mcp.files.documents.line_ends import split_lines
from goat_mcp.files.editing.changes import Change, Replacement, replaced
from goat_mcp.files.editing.fuzzy_match import MatchPosition, fuzzy_match
from goat_mcp.files.editing.lines import FileText, line_end, line_start
from goat_mcp.files.editing.matching import Found, Hit, to_bytes, to_text

_NEARBY_BYTES = 4096
"""How far around a hit to look for how the file indents."""
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_LINE_FEEDS = re.compile(r"\r\n|\n")
_SINGLE_RETURN = re.compile(r"\r(?!\n)")


def replace_found(text: FileText, found: Found, old: str, new: str) -> tuple[bytes, list[Change]]:
    """The content with `new` at every hit of `old`, and what changed."""
    same_everywhere = _same_everywhere(text, old, new) if found.tier == 1 else None
    if same_everywhere is not None and found.needle is not None and len(found.hits) < found.count:
        return _all_at_once(text.data, found.hits[0].start, found.needle, same_everywhere)
    parts = [
        Replacement(
            hit.start, hit.end, _fitted(text.data, hit, found, old, new) if same_everywhere is None else same_everywhere
        )
        for hit in found.every_hit(text.data)
    ]
    return replaced(text.data, parts)


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


def _all_at_once(content: bytes, first: int, needle: bytes, text: bytes) -> tuple[bytes, list[Change]]:
    """More hits than are worth listing: what lies from the first to the last of them counts as changed."""
    result = content.replace(needle, text)
    end = content.rfind(needle) + len(needle)
    return result, [Change(first, end, first, len(result) - (len(content) - end))]


def _fitted(content: bytes, hit: Hit, found: Found, old: str, new: str) -> bytes:
    file_lines, old_lines = split_lines(to_text(content[hit.start : hit.end])), split_lines(old)
    if len(file_lines) < len(old_lines):
        file_lines.append("")  # blanks at the end of the old text stand for an empty line
    place = MatchPosition(
        file_lines,
        old_lines,
        _line_end_near(content, hit),
        _lines_near(content, hit) if found.tier == 3 else (),
    )
    return to_bytes(fuzzy_match(place, split_lines(new), reindent=found.tier == 3))


def _line_end_near(content: bytes, hit: Hit) -> str | None:
    """The terminator of the line a hit ends in, else of the one before; None where there is no other line."""
    end, after = line_end(content, max(hit.start, hit.end - 1))
    if after == end:
        after = line_start(content, hit.start)
        end, after = line_end(content, max(0, after - 1))
    return content[end:after].decode() or None


def _lines_near(content: bytes, hit: Hit) -> list[str]:
    start = max(0, hit.start - _NEARBY_BYTES)
    return split_lines(to_text(content[start : hit.end + _NEARBY_BYTES]))[1 if start else 0 :]
