"""NotebookEdit: change one cell of a notebook, from its file to its file. Finding and rewriting cells:
`files.editing.notebook_cells`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import anyio.to_thread
from pydantic import Field

from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.coercion import Problem
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import Access, BuiltinTool, PreviewsChanges
from goat_mcp.files.changes.call_files import Changes, DirectChanges
from goat_mcp.files.changes.preview import preview_of
from goat_mcp.files.documents.file_type import size_text
from goat_mcp.files.documents.notebook import MAX_FILE_BYTES
from goat_mcp.files.documents.text_encoding import UTF_8, check_insertion
from goat_mcp.files.editing.current_file import load_text, open_current
from goat_mcp.files.editing.matching import to_bytes, to_text
from goat_mcp.files.editing.notebook_cells import CellChange, CellType, Notebook
from goat_mcp.files.editing.read_state import ReadState
from goat_mcp.files.settings import FileOptions
from goat_mcp.files.workspace import Files, FileVersion, Workspace, WorkspacePath
from goat_mcp.state.sessions import ReadRecord, Sessions


class NotebookEditInput(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {"file_path": "notebook_path"}
    text_fields: ClassVar[frozenset[str]] = frozenset({"new_source"})

    notebook_path: str = Field(description="Absolute path")
    new_source: str
    cell_id: str | None = Field(None, description="As Read shows it, or cell-N, from 0")
    cell_type: Literal["code", "markdown"] | None = Field(None, description="Needed to insert")
    edit_mode: Literal["replace", "insert", "delete"] = "replace"

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> Iterable[Problem]:
        if arguments.get("edit_mode") == "delete" and arguments.get("new_source") is None:
            arguments["new_source"] = ""
        for name in ("cell_id", "cell_type"):
            # Models that fill in every field send an empty one for what they leave open.
            if arguments.get(name) == "":
                del arguments[name]
        return ()

    @classmethod
    def problems_together(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        mode = given.get("edit_mode", "replace")
        if mode == "insert" and "cell_type" not in given:
            yield "cell_type", 'required to insert a cell: "code" or "markdown"'
        if mode in ("replace", "delete") and "cell_id" not in given:
            yield "cell_id", f"required to {mode} a cell; Read shows the ids"


@dataclass(frozen=True)
class NotebookEdit(
    BuiltinTool[NotebookEditInput],
    PreviewsChanges,
    side_effect=SideEffect.MUTATING,
    toolset="notebook",
    title="Edit notebook",
):
    """Replace, insert or delete one cell of a Jupyter notebook you have read.

    A new cell goes after cell_id, to the top without one. Replacing a code cell clears its outputs.
    """

    examples = (
        ToolExample("Other code", {"notebook_path": "@a.ipynb", "cell_id": "3f2a9c01", "new_source": "x = 2"}),
        ToolExample(
            "A heading at the top",
            {"notebook_path": "@a.ipynb", "new_source": "# Sales", "cell_type": "markdown", "edit_mode": "insert"},
        ),
    )

    workspace: Workspace
    sessions: Sessions
    options: FileOptions = field(default_factory=FileOptions)
    changes: Changes = field(default_factory=DirectChanges)

    def access(self, input: NotebookEditInput) -> Access:
        path = self.workspace.resolve(input.notebook_path)
        return Access(asked=(path.plain,), writes=(str(self.workspace.real_path(path)),))

    async def execute(self, input: NotebookEditInput, ctx: ToolContext) -> ToolResult:
        path = self.workspace.resolve(input.notebook_path)
        real_path = self.workspace.real_path(path)
        files = self.changes.of(self.workspace, ctx, self.spec.name)
        reads = self.sessions.of(ctx.session_key).reads
        async with self.workspace.lock(real_path):
            file = self._file(ctx, files, path, real_path)
            seen = file.state.seen
            outcome = await anyio.to_thread.run_sync(file.change, _request(input))
            if seen is not None:
                now = outcome.version
                reads.record(str(real_path), ReadRecord(now.sha256, now.size, now.mtime_ns, seen.whole))
        return await files.finish(outcome.result)

    async def preview(self, input: NotebookEditInput, ctx: ToolContext) -> str:
        def prepare(path: WorkspacePath, files: Files) -> Callable[[], object]:
            return partial(self._file(ctx, files, path, self.workspace.real_path(path)).change, _request(input))

        files = self.changes.of(self.workspace, ctx, self.spec.name)
        return await preview_of(input.notebook_path, self.workspace, files, prepare)

    def _file(self, ctx: ToolContext, files: Files, path: WorkspacePath, real_path: Path) -> NotebookFile:
        seen = self.sessions.of(ctx.session_key).reads.get(str(real_path))
        state = ReadState(self.options.read_before_write, str(path), seen)
        return NotebookFile(files, path, real_path, state, self.options.legacy_encoding)


EditMode = Literal["replace", "insert", "delete"]
_DONE: dict[EditMode, str] = {"replace": "Replaced", "insert": "Inserted", "delete": "Deleted"}


@dataclass(frozen=True)
class CellRequest:
    """`cell_id` may be missing only to insert, `cell_type` only otherwise."""

    mode: EditMode
    cell_id: str | None
    cell_type: CellType | None
    source: str


def _request(input: NotebookEditInput) -> CellRequest:
    return CellRequest(input.edit_mode, input.cell_id, input.cell_type, input.new_source)


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
