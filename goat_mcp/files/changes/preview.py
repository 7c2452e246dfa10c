"""What a call would change in a file, found by the code that changes it: nothing is written.

For the person who is asked about the call. A file that rules hide from the caller is hidden here as well.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

import anyio.to_thread

from goat_mcp.core.errors import ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.tool import NO_DIFF
from goat_mcp.files.changes.bounded_diff import bounded_diff
from goat_mcp.files.changes.call_files import CallFiles
from goat_mcp.files.documents.visible_text import make_visible, shown_path
from goat_mcp.files.workspace import FileVersion, OpenedFile, Workspace, WorkspacePath, WrittenFile

MAX_BYTES = 4 * 1024 * 1024
"""Of a larger file no diff is shown: a person waits for the question, and reads sixty lines of it."""
MAX_CHARS = 100_000


class PreviewFiles:
    """One call's files, as `files` has them; what would be written is kept in `diff` instead."""

    def __init__(self, files: CallFiles, workspace: Workspace) -> None:
        self._files = files
        self._workspace = workspace
        self.diff = ""

    def stat(self, path: WorkspacePath) -> os.stat_result | None:
        return self._files.stat(path)

    def open_file(self, path: WorkspacePath) -> OpenedFile:
        return self._files.open_file(path)

    def write_file(self, path: WorkspacePath, data: bytes, *, expect: FileVersion | None) -> WrittenFile:
        self._show(path, data, is_new=expect is None)
        version = FileVersion(hashlib.sha256(data).hexdigest(), len(data), 0)
        return WrittenFile(self._workspace.real_path(path), version, created=expect is None)

    def remove_file(self, path: WorkspacePath, *, expect: FileVersion) -> None:
        self._show(path, b"", is_new=False)

    def notices(self, path: WorkspacePath) -> tuple[str, ...]:
        return ()

    async def finish(self, result: ToolResult) -> ToolResult:
        return result

    def _show(self, path: WorkspacePath, data: bytes, *, is_new: bool) -> None:
        self._workspace.check_writable(path)
        old = b""
        if not is_new:
            with self._files.open_file(path) as file:
                old = file.read()
        self.diff = make_visible(bounded_diff(old, data, shown_path(path), MAX_CHARS))


Prepare = Callable[[WorkspacePath, PreviewFiles], Callable[[], object]]
"""Makes ready the work that changes a file, which then runs in a thread."""


async def preview_of(asked: str, workspace: Workspace, files: CallFiles, prepare: Prepare) -> str:
    """The diff of what would be written to the path `asked`; if that is nothing, one line that says why."""
    preview = PreviewFiles(files, workspace)
    try:
        path = workspace.resolve(asked)
        found = preview.stat(path)
        if found is not None and found.st_size > MAX_BYTES:
            return f"{NO_DIFF}the file has {found.st_size:,} bytes"
        await anyio.to_thread.run_sync(prepare(path, preview))
    except ToolError as refused:
        return " ".join(make_visible(f"{NO_DIFF}{refused.message}").split())
    except (OSError, ValueError):
        return ""  # the call will fail by itself, and say why
    return preview.diff or f"{NO_DIFF}nothing would change"
