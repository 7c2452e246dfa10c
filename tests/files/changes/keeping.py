"""The tools that change files over one folder, with a journal and a review, for the tests of both."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goat_mcp.calls.audit import AuditLog
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Ask, nobody_to_ask
from goat_mcp.core.resources import Announcements
from goat_mcp.core.result import ToolResult
from goat_mcp.files.changes.change import UNDO, Author, Change
from goat_mcp.files.changes.journal import Journal, JournalLimits
from goat_mcp.files.changes.review import Review, StagedChanges
from goat_mcp.files.changes.staged_files import FileChanges
from goat_mcp.files.changes.undo import Undo, UndoAttempt, undone_ids
from goat_mcp.files.settings import FileOptions
from goat_mcp.files.workspace import Workspace
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.sessions import Sessions
from goat_mcp.tools.edit import Edit
from goat_mcp.tools.notebook_edit import NotebookEdit
from goat_mcp.tools.read import Read
from goat_mcp.tools.write import Write

UNCHECKED = FileOptions(read_before_write="off")


@dataclass
class Desk:
    """`top` is the workspace's root; state and locks lie beside it."""

    folder: Path
    review_mode: bool = False
    limits: JournalLimits = field(default_factory=JournalLimits)
    options: FileOptions = UNCHECKED

    def __post_init__(self) -> None:
        self.top = self.folder.resolve() / "ws"
        self.top.mkdir(exist_ok=True)
        self.state = StateDirectory(self.folder / "state")
        self.workspace = Workspace(self.top, lock_folder=self.folder / "locks")
        self.journal = Journal(self.state, self.limits)
        self.queue = StagedChanges(self.state)
        self.announcements = Announcements()
        self.audit = AuditLog(self.state.path / "audit.jsonl")
        self.review = Review(self.queue, self.journal, self.workspace, self.announcements, self.audit)
        self.changes = FileChanges(self.review, review_mode=self.review_mode)
        self.sessions = Sessions()
        self._calls = 0

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def ctx(self, session: str = "local", ask: Ask = nobody_to_ask, principal: str = "local") -> ToolContext:
        self._calls += 1
        return ToolContext(call_id=f"call-{self._calls}", session_key=session, principal=principal, ask=ask)

    async def write(
        self,
        path: Path,
        content: str,
        *,
        session: str = "local",
        ask: Ask = nobody_to_ask,
        principal: str = "local",
    ) -> ToolResult:
        tool = Write(self.workspace, self.sessions, self.options, self.changes)
        ctx = self.ctx(session, ask, principal)
        return await tool.execute(tool.validate({"file_path": str(path), "content": content}), ctx)

    async def edit(
        self, path: Path, old: str, new: str, *, session: str = "local", ask: Ask = nobody_to_ask
    ) -> ToolResult:
        tool = Edit(self.workspace, self.sessions, self.options, changes=self.changes)
        given = {"file_path": str(path), "old_string": old, "new_string": new}
        return await tool.execute(tool.validate(given), self.ctx(session, ask))

    async def edit_cell(self, path: Path, source: str, **arguments: Any) -> ToolResult:
        tool = NotebookEdit(self.workspace, self.sessions, self.options, self.changes)
        given = {"notebook_path": str(path), "new_source": source, "cell_id": "a", **arguments}
        return await tool.execute(tool.validate(given), self.ctx())

    async def read(self, path: Path, session: str = "local") -> ToolResult:
        tool = Read(self.workspace, self.sessions, self.options, changes=self.changes)
        return await tool.execute(tool.validate({"file_path": str(path)}), self.ctx(session))

    def undo(self) -> Undo:
        self._calls += 1
        return Undo(self.journal, self.workspace, Author(UNDO, f"call-{self._calls}", "terminal", "local"))

    def not_undone(self) -> list[Change]:
        changes = self.journal.records.newest_first()
        undone = undone_ids(changes)
        return [change for change in changes if change.author.tool != UNDO and change.id not in undone]

    async def undo_all(self) -> list[UndoAttempt]:
        return await self.undo().run(self.not_undone())

    def blobs(self) -> list[Path]:
        return sorted(self.state.folder("changes", "blobs").iterdir())

    def records(self) -> list[Path]:
        return sorted(self.state.folder("changes", "records").iterdir())


def notebook(source: str) -> str:
    cell: dict[str, Any] = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": [source]}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"
