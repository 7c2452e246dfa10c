"""What one call changed in files, and taking that back, for the view Calls."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import LOCAL
from goat_mcp.files.changes.change import UNDO, Author, Change
from goat_mcp.files.changes.journal import UNLIMITED, Journal
from goat_mcp.files.changes.undo import Undo, UndoOutcome, undone_ids
from goat_mcp.files.workspace import Workspace
from goat_mcp.server.ui.parts import UiParts

MAX_DIFF_CHARS = 100_000


def changes_of(parts: UiParts, call: Mapping[str, Any]) -> Sequence[Change]:
    """Those that the call made, newest first."""
    if not (parts.state.path / "changes").is_dir():
        return ()
    until_s = call["ended_at_s"] or time.time()
    records = Journal(parts.state, UNLIMITED).records
    made = records.newest_first(call["at_s"] - 1.0, until_s + 1.0)
    return [change for change in made if change.author.call_id == call["call_id"]]


def is_undone(parts: UiParts, changes: Sequence[Change]) -> bool:
    """Whether all of them are taken back."""
    if not changes:
        return False
    since = Journal(parts.state, UNLIMITED).records.newest_first(min(change.at_s for change in changes))
    undone = undone_ids(since)
    return all(change.id in undone for change in changes)


def _undo_of(parts: UiParts, call: Mapping[str, Any]) -> tuple[Undo, list[Change]]:
    """An undo in the workspace that the call worked in, and the changes to take back. Raises `ToolError`."""
    made = changes_of(parts, call)
    if not made:
        raise ToolError(
            ErrorCode.NOT_FOUND, f"call {call['call_id']} has changed no file", "Only changes of files can be undone."
        )
    roots = dict.fromkeys(change.root for change in made)
    if gone := next((root for root in roots if not root.is_dir()), None):
        raise ToolError(
            ErrorCode.NOT_FOUND, f"the workspace {gone} is not there", "Nothing was changed. Put it back first."
        )
    workspace = Workspace(*roots, private=(parts.state.path,))
    author = Author(UNDO, secrets.token_hex(8), "page", LOCAL)
    undo = Undo(Journal(parts.state, UNLIMITED), workspace, author)
    return undo, undo.of_call(str(call["call_id"]), call["at_s"] - 1.0)


async def undo_data(parts: UiParts, call: Mapping[str, Any]) -> dict[str, Any]:
    """What an undo of the call's changes would do. Nothing changes. Raises `ToolError`."""
    undo, changes = await anyio.to_thread.run_sync(_undo_of, parts, call)
    attempts = await undo.run(changes, dry_run=True)
    would = [attempt.change for attempt in attempts if attempt.outcome is UndoOutcome.WOULD_UNDO]
    diffs = await anyio.to_thread.run_sync(undo.diffs, would, MAX_DIFF_CHARS)
    return {
        "title": f"Undo of {call['tool']}",
        "id": call["call_id"],
        "tool": call["tool"],
        "at_s": call["at_s"],
        "attempts": [attempt.in_words for attempt in attempts],
        "diffs": [(str(path), diff) for path, diff in diffs.items()],
        "is_possible": bool(would),
    }


async def undo_call(parts: UiParts, call: Mapping[str, Any]) -> str:
    """Undo the call's changes, as `goat-mcp undo --call` does. Returns what was done, file by file. Raises
    `ToolError`."""
    gateway = await parts.gateway()
    undo, changes = await anyio.to_thread.run_sync(_undo_of, parts, call)
    attempts = await undo.run_recorded(changes, gateway.audit, "page", "goat-mcp ui")
    lines = [attempt.in_words for attempt in attempts]
    if any(attempt.outcome is UndoOutcome.UNDONE for attempt in attempts):
        lines.append(f"To take this back: goat-mcp undo --call {undo.author.call_id}")
    return "\n".join(lines)
