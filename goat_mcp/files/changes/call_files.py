"""The files as one call sees and changes them: what the tools that change files work with."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult, text_block, with_notices
from goat_mcp.files.changes.change import Author
from goat_mcp.files.changes.journal import Journal
from goat_mcp.files.workspace import Files, FileVersion, OpenedFile, Workspace, WorkspacePath, WrittenFile


class CallFiles(Files, Protocol):
    """One call's files. It changes at most one of them."""

    def remove_file(self, path: WorkspacePath, *, expect: FileVersion) -> None:
        """As `Workspace.remove_file`."""
        ...

    def notices(self, path: WorkspacePath) -> tuple[str, ...]:
        """What a reader of that file should know."""
        ...

    async def finish(self, result: ToolResult) -> ToolResult:
        """The call's result with the outcome of its change, which a person may be asked about. Hold no lock."""
        ...


class Changes(Protocol):
    """Decides whether a change takes effect at once or is staged."""

    def of(self, workspace: Workspace, ctx: ToolContext, tool: str) -> CallFiles: ...


class DirectFiles:
    """Changes take effect at once and are not recorded."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def stat(self, path: WorkspacePath) -> os.stat_result | None:
        return self.workspace.stat(path)

    def open_file(self, path: WorkspacePath) -> OpenedFile:
        return self.workspace.open_file(path)

    def write_file(self, path: WorkspacePath, data: bytes, *, expect: FileVersion | None) -> WrittenFile:
        return self.workspace.write_file(path, data, expect=expect)

    def remove_file(self, path: WorkspacePath, *, expect: FileVersion) -> None:
        self.workspace.remove_file(path, expect=expect)

    def notices(self, path: WorkspacePath) -> tuple[str, ...]:
        return ()

    async def finish(self, result: ToolResult) -> ToolResult:
        return result


class DirectChanges:
    """For tools that are built on their own, without a gateway."""

    def of(self, workspace: Workspace, ctx: ToolContext, tool: str) -> CallFiles:
        return DirectFiles(workspace)


WriteListener = Callable[[Path, str | None], Awaitable[str]]
"""Called for each file that was written, with its real path and the hash of its former bytes (None: there was no file).
Returns what the writer should know."""


class JournaledFiles(DirectFiles):
    def __init__(
        self, workspace: Workspace, journal: Journal, author: Author, written: WriteListener | None = None
    ) -> None:
        super().__init__(workspace)
        self._written = written
        self._real_path: Path | None = None
        self._former_sha256: str | None = None
        self._journal = journal
        self._author = author
        self._not_kept = ""

    def write_file(self, path: WorkspacePath, data: bytes, *, expect: FileVersion | None) -> WrittenFile:
        outcome = self._journal.write(self.workspace, path, data, expect=expect, author=self._author)
        self._not_kept = outcome.not_kept
        assert outcome.written is not None  # only a removal leaves none
        self._real_path = outcome.written.real_path
        self._former_sha256 = None if expect is None else expect.sha256
        return outcome.written

    def remove_file(self, path: WorkspacePath, *, expect: FileVersion) -> None:
        self._not_kept = self._journal.remove(self.workspace, path, expect=expect, author=self._author).not_kept

    async def finish(self, result: ToolResult) -> ToolResult:
        result = with_not_kept(result, self._not_kept)
        if self._written is None or self._real_path is None:
            return result
        notice = await self._written(self._real_path, self._former_sha256)
        if not notice:
            return result
        return replace(result, content=(text_block(with_notices(result.text, [notice])),))


def with_not_kept(result: ToolResult, why: str) -> ToolResult:
    """Say that the change cannot be undone, if it cannot."""
    if not why:
        return result
    notice = f"this change cannot be undone with goat-mcp undo; the old content was not kept: {why}"
    return replace(result, content=(text_block(with_notices(result.text, [notice])),))
