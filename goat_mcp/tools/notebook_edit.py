"""NotebookEdit: change one cell of a notebook. Finding, rewriting and storing it lives in `files.editing`, which is
imported at the first call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import anyio.to_thread
from pydantic import Field

from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.coercion import Problem
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import Access, BuiltinTool
from goat_mcp.files.changes.call_files import Changes, DirectChanges
from goat_mcp.files.editing.read_state import ReadState
from goat_mcp.files.settings import FileOptions
from goat_mcp.files.workspace import Workspace
from goat_mcp.state.sessions import FileSeen, Sessions


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
    BuiltinTool[NotebookEditInput], side_effect=SideEffect.MUTATING, toolset="notebook", title="Edit notebook"
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
        from goat_mcp.files.editing.notebook_file import CellRequest, NotebookFile

        path = self.workspace.resolve(input.notebook_path)
        real_path = self.workspace.real_path(path)
        request = CellRequest(input.edit_mode, input.cell_id, input.cell_type, input.new_source)
        files = self.changes.of(self.workspace, ctx, self.spec.name)
        reads = self.sessions.of(ctx.session_key).reads
        async with self.workspace.lock(real_path):
            seen = reads.get(str(real_path))
            state = ReadState(self.options.read_before_write, str(path), seen)
            file = NotebookFile(files, path, real_path, state, self.options.legacy_encoding)
            outcome = await anyio.to_thread.run_sync(file.change, request)
            if seen is not None:
                now = outcome.version
                reads.record(str(real_path), FileSeen(now.sha256, now.size, now.mtime_ns, seen.whole))
        return await files.finish(outcome.result)
