"""What changes in a file, as a unified diff that is bounded in time and length."""

from __future__ import annotations

import difflib
from itertools import islice

from goat_mcp.files.documents.line_ends import common_ends

CONTEXT_LINES = 3
MAX_CHANGED_LINES = 20_000
"""Comparing more takes seconds."""


def bounded_diff(old: bytes, new: bytes, path: str, max_chars: int) -> str:
    """What changes from `old` to `new`; if it is no text, or too much of it, only how much."""
    try:
        old_lines, new_lines = (data.decode("utf-8").splitlines() for data in (old, new))
    except UnicodeDecodeError:
        return f"{path}: not UTF-8 text; {len(old):,} bytes become {len(new):,}"
    same, alike = common_ends(old_lines, new_lines)
    start, cut = max(0, same - CONTEXT_LINES), max(0, alike - CONTEXT_LINES)
    before, after = (lines[start : len(lines) - cut] for lines in (old_lines, new_lines))
    if len(before) + len(after) > MAX_CHANGED_LINES:
        return f"{path}: {len(before):,} lines become {len(after):,}, from line {same + 1} on; too many to show"
    if before == after:
        return f"{path}: only line ends change" if old != new else f"{path}: nothing changes"
    # The headers and line numbers are those of the whole file.
    lines = islice(difflib.unified_diff(before, after, n=CONTEXT_LINES, lineterm=""), 2, None)
    text = "\n".join((f"--- {path}", f"+++ {path}", *(_moved(line, start) for line in lines)))
    if len(text) > max_chars:
        text = f"{text[:max_chars]}\n[... {len(text) - max_chars:,} more characters]"
    return text


def _moved(line: str, by: int) -> str:
    if not by or not line.startswith("@@"):
        return line
    sides = (_moved_range(side, by) for side in line.split()[1:3])
    return f"@@ {' '.join(sides)} @@"


def _moved_range(side: str, by: int) -> str:
    first, comma, count = side[1:].partition(",")
    return f"{side[0]}{int(first) + by}{comma}{count}"
