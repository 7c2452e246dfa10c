"""One call's files where changes take effect at once: each is journaled before it does."""

from __future__ import annotations

from dataclasses import replace

from goat_mcp.changes.call_files import DirectFiles
from goat_mcp.changes.change import Author
from goat_mcp.changes.journal import Journal
from goat_mcp.core.result import ToolResult, text_block, with_notices
from goat_mcp.workspace import FileVersion, Workspace, WorkspacePath, WrittenFile


class JournaledFiles(DirectFiles):
    def __init__(self, workspace: Workspace, journal: Journal, author: Author) -> None:
        super().__init__(workspace)
        self._journal = journal
        self._author = author
        self._not_kept = ""

    def write_file(self, path: WorkspacePath, data: bytes, *, expect: FileVersion | None) -> WrittenFile:
        outcome = self._journal.write(self.workspace, path, data, expect=expect, author=self._author)
        self._not_kept = outcome.not_kept
        assert outcome.written is not None  # only a removal leaves none
        return outcome.written

    async def told(self, result: ToolResult) -> ToolResult:
        return with_not_kept(result, self._not_kept)


def with_not_kept(result: ToolResult, why: str) -> ToolResult:
    """Say that the change cannot be undone, if it cannot."""
    if not why:
        return result
    notice = f"this change cannot be undone with goat-mcp undo; the old content was not kept: {why}"
    return replace(result, content=(text_block(with_notices(result.text, [notice])),))
