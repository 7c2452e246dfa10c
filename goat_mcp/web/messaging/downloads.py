"""A file of a messenger, into the workspace: as a new file, by the rules that all writers keep (R-FILE-1 to 6)."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.files.changes.call_files import Changes
from goat_mcp.files.workspace import Workspace, WorkspacePath

MAX_BYTES = 20 * 1024 * 1024


class NewFile:
    """Where a download goes. What is there already is never replaced."""

    def __init__(self, workspace: Workspace, changes: Changes, asked: str) -> None:
        """`asked` may be relative to the workspace's first directory. Raises `ToolError`."""
        text = asked if asked.startswith(("/", "@")) else f"@/{asked}"
        self._workspace = workspace
        self._changes = changes
        self._path = workspace.resolve(text)

    async def check(self) -> None:
        """Before anything is fetched. Raises `ToolError` if it could not be kept."""
        await anyio.to_thread.run_sync(self._check)

    def _check(self) -> None:
        self._workspace.check_writable(self._path)
        if self._workspace.stat(self._path) is not None:
            raise _exists(self._path)

    async def save(self, data: bytes, ctx: ToolContext, tool: str, facts: dict[str, Any]) -> ToolResult:
        """Write it; the result says where it is, beside `facts`."""
        files = self._changes.of(self._workspace, ctx, tool)
        real = self._workspace.real_path(self._path)
        async with self._workspace.lock(real):
            try:
                await anyio.to_thread.run_sync(partial(files.write_file, self._path, data, expect=None))
            except ToolError as refused:
                if refused.code is ErrorCode.STALE:
                    raise _exists(self._path) from None
                raise
        value = {**facts, "path": str(self._path), "bytes": len(data)}
        text = json.dumps(value, ensure_ascii=False)
        return await files.finish(ToolResult(content=(text_block(text),), structured=value))


def too_large(service: str, what: str, size: int | None) -> ToolError:
    said = f"has {size:,} bytes" if size is not None else "is longer than that"
    return ToolError(
        ErrorCode.TOO_LARGE,
        f"{service}: {what} {said}; at most {MAX_BYTES:,} are downloaded",
        "Ask for it to be sent smaller, or have the user download it.",
    )


def _exists(path: WorkspacePath) -> ToolError:
    return ToolError(ErrorCode.STALE, f"{path} exists already, and a download replaces nothing", "Choose another path.")
