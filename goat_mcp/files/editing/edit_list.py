"""Several edits of one file, in order and in memory: all of them or none.

Contract: tools.md, Edit. Whether the client may change the file is asked in between, of `ReadState`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.line_ends import FileText, count_line_ends
from goat_mcp.files.editing.matching import Matches, Tier, find, to_bytes
from goat_mcp.files.editing.nearest import Nearest, nearest_region
from goat_mcp.files.editing.replacing import ChangedSpan, compose_changes, replace_found

MAX_LINES_NAMED = 20


@dataclass(frozen=True)
class TextEdit:
    """Replace `old` by `new`. An empty `old` fills an empty file."""

    old: str
    new: str
    replace_all: bool = False


@dataclass(frozen=True)
class Edited:
    """What the edits made of the content. `tiers` and `counts` are by edit."""

    content: bytes
    changes: Sequence[ChangedSpan] = ()
    tiers: Sequence[Tier] = ()
    counts: Sequence[int] = ()
    every_match_exact_and_unique: bool = True


def apply_edits(content: bytes, edits: Sequence[TextEdit], *, path: str, allow_fuzz: bool) -> Edited:
    """Raises NO_CHANGE, NO_MATCH, AMBIGUOUS or INPUT, naming the index of the edit if there are several."""
    edited = Edited(content)
    for index, edit in enumerate(edits):
        try:
            edited = _apply(edited, edit, path=path, allow_fuzz=allow_fuzz)
        except ToolError as refusal:
            if len(edits) > 1:
                raise _of_list(refusal, index, len(edits)) from None
            raise
    if not _differs(content, edited):
        raise ToolError(
            ErrorCode.NO_CHANGE,
            f"the edit would leave {path} as it is; nothing was written",
            "Edit keeps each line's terminator and the file's tabs or spaces; use Write to convert those.",
        )
    return edited


def _differs(content: bytes, edited: Edited) -> bool:
    """Whether anything changed. Looks at the changed places only: comparing large contents takes time."""
    return any(
        content[change.old_start : change.old_end] != edited.content[change.new_start : change.new_end]
        for change in edited.changes
    )


def _apply(edited: Edited, edit: TextEdit, *, path: str, allow_fuzz: bool) -> Edited:
    if edit.old == edit.new:
        raise ToolError(
            ErrorCode.NO_CHANGE,
            "old_string and new_string are the same",
            "Send the text as it is in old_string and as it shall be in new_string.",
        )
    content = edited.content
    if not edit.old:
        return _filled(edited, edit, path)
    text = FileText(content)
    found = find(text, edit.old, allow_fuzz=allow_fuzz, every=edit.replace_all)
    if found is None:
        raise _no_match(content, edit.old, path, allow_fuzz=allow_fuzz)
    if found.count > 1 and not edit.replace_all:
        raise _ambiguous(content, found, path)
    result, changes = replace_found(text, found, edit.old, edit.new)
    return Edited(
        result,
        compose_changes(edited.changes, changes) if edited.changes else changes,
        (*edited.tiers, found.tier),
        (*edited.counts, found.count),
        edited.every_match_exact_and_unique and found.tier == 1 and found.count == 1,
    )


def _filled(edited: Edited, edit: TextEdit, path: str) -> Edited:
    if edited.content:
        raise ToolError(
            ErrorCode.INPUT,
            f"old_string is empty, but {path} has text already",
            "Name the text to replace in old_string, or use Write to replace the whole file.",
        )
    text = to_bytes(edit.new)
    changes = compose_changes(edited.changes, [ChangedSpan(0, 0, 0, len(text))])
    return Edited(text, changes, (*edited.tiers, 1), (*edited.counts, 1), edited.every_match_exact_and_unique)


def _no_match(content: bytes, wanted: str, path: str, *, allow_fuzz: bool) -> ToolError:
    nearest = nearest_region(content, wanted)
    message = f"old_string was not found in {path}; nothing was written"
    where = "" if nearest.lines_searched is None else f" in the first {nearest.lines_searched} lines"
    region = nearest.region
    if region is None:
        return ToolError(
            ErrorCode.NO_MATCH,
            f"{message}; nothing similar{where or ' is in it'}",
            "Read the file, then copy old_string from it.",
            facts={"nearest": None},
        )
    cause = region.cause()
    exact = " (edit.allow_fuzz is off)" if cause and not allow_fuzz else ""
    return ToolError(
        ErrorCode.NO_MATCH,
        message + (f": {cause}{exact}" if cause else ""),
        f"Copy old_string from lines {region.first_line}-{region.last_line} as they are, then call again.",
        facts={
            "nearest": {
                "first_line": region.first_line,
                "last_line": region.last_line,
                "similarity": round(region.similarity, 2),
            }
        },
        output=_nearest_text(nearest, where),
    )


def _nearest_text(nearest: Nearest, where: str) -> str:
    region = nearest.region
    assert region is not None
    return (
        f"Nearest region{where}: lines {region.first_line}-{region.last_line}, {region.similarity:.0%} alike "
        f"(- old_string, + the file, \u2192 tab, \u00b7 blank)\n{region.diff()}"
    )


def _ambiguous(content: bytes, found: Matches, path: str) -> ToolError:
    lines: list[int] = []
    number, counted = 1, 0
    for hit in found.hits[:MAX_LINES_NAMED]:
        number += count_line_ends(content, counted, hit.start)
        counted = hit.start
        lines.append(number)
    more = ", ..." if found.count > len(lines) else ""
    return ToolError(
        ErrorCode.AMBIGUOUS,
        f"old_string has {found.count} matches in {path} (tier {found.tier}), on lines "
        f"{', '.join(map(str, lines))}{more}; nothing was written",
        "Add lines around it to old_string until it is unique, or set replace_all to change every match.",
        facts={"matches": found.count, "lines": lines, "tier": found.tier},
    )


def _of_list(refusal: ToolError, index: int, count: int) -> ToolError:
    return ToolError(
        refusal.code,
        f"edits[{index}] (of {count}, counted from 0): {refusal.message}; none of the edits was applied",
        refusal.suggestion,
        facts={**(refusal.facts or {}), "edit_index": index},
        output=refusal.output,
    )
