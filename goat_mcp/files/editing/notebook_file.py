"""One change of one cell, from the notebook's file to its file, and what to say of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.files.documents.file_type import size_text
from goat_mcp.files.documents.notebook import MAX_FILE_BYTES
from goat_mcp.files.documents.text_encoding import UTF_8, check_insertion
from goat_mcp.files.editing.current_file import load_text, open_current
from goat_mcp.files.editing.matching import to_bytes, to_text
from goat_mcp.files.editing.notebook_cells import CellChange, CellType, Notebook
from goat_mcp.files.editing.read_state import ReadState
from goat_mcp.files.workspace import Files, FileVersion, WorkspacePath

EditMode = Literal["replace", "insert", "delete"]
_DONE: dict[EditMode, str] = {"replace": "Replaced", "insert": "Inserted", "delete": "Deleted"}


@dataclass(frozen=True)
class CellRequest:
    """`cell_id` may be missing only to insert, `cell_type` only otherwise."""

    mode: EditMode
    cell_id: str | None
    cell_type: CellType | None
    source: str


@dataclass(frozen=True)
class NotebookEditResult:
    """`version` is what the file holds now."""

    result: ToolResult
    version: FileVersion


@dataclass(frozen=True)
class NotebookFile:
    """A notebook whose lock is held. Blocking."""

    files: Files
    path: WorkspacePath
    real_path: Path
    state: ReadState
    legacy_encoding: str | None

    def change(self, request: CellRequest) -> NotebookEditResult:
        """Raises `ToolError`: NOTEBOOK, CELL, AMBIGUOUS, NOT_READ, STALE, TOO_LARGE; as opening and writing do."""
        check_insertion(request.source, UTF_8)
        self._check_size()
        with open_current(self.files, self.path, self.real_path) as current:
            self.state.before_editing()
            version = current.version
            self.state.require_current(version)
            stored = load_text(current.data, legacy_encoding=self.legacy_encoding, path=str(self.path))
        notebook = Notebook(to_text(stored.content), str(self.path))
        change = self._change(notebook, request, version)
        if not change.is_change:
            return NotebookEditResult(self._unchanged(request, change), version)
        content = to_bytes(notebook.text(utf=stored.format.encoding.startswith("utf-")))
        written = self.files.write_file(self.path, stored.stored(content), expect=version)
        return NotebookEditResult(self._changed(request, change), written.version)

    def _check_size(self) -> None:
        found = self.files.stat(self.path)
        if found is not None and found.st_size > MAX_FILE_BYTES:
            raise ToolError(
                ErrorCode.TOO_LARGE,
                f"the notebook {self.path} has {size_text(found.st_size)}; at most 100 MB are edited",
                "Clear its outputs first: jupyter nbconvert --clear-output --inplace FILE, run by Bash.",
            )

    def _change(self, notebook: Notebook, request: CellRequest, version: FileVersion) -> CellChange:
        index = None
        if request.cell_id is not None:
            position = notebook.find(request.cell_id)
            index = position.index
            if position.by_position:
                self.state.before_overwriting(version)
        if request.mode == "insert" and request.cell_type is not None:
            return notebook.insert(index, request.source, request.cell_type)
        if index is None:
            raise ValueError(f"a request to {request.mode} must say which cell, or of which type")
        if request.mode == "delete":
            return notebook.delete(index)
        return notebook.replace(index, request.source, request.cell_type)

    def _changed(self, request: CellRequest, change: CellChange) -> ToolResult:
        where = f"cell {change.index + 1} of {change.total_cells}"
        if request.mode == "delete":
            where = f"it was cell {change.index + 1}, {change.total_cells or 'none'} left"
        text = f"{_DONE[request.mode]} {change.cell_type} cell {change.cell_id} in {self.path} ({where})."
        return text_result(text, facts=_facts(request, change), notices=change.notices)

    def _unchanged(self, request: CellRequest, change: CellChange) -> ToolResult:
        where = f"cell {change.index + 1} of {change.total_cells}"
        text = f"{self.path} is unchanged: {change.cell_type} cell {change.cell_id} ({where}) has this source already."
        return text_result(text, facts=_facts(request, change))


def _facts(request: CellRequest, change: CellChange) -> dict[str, Any]:
    return {
        "cell_id": change.cell_id,
        "cell_index": change.index,
        "cell_type": change.cell_type,
        "edit_mode": request.mode,
    }
