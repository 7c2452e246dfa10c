"""The files as one call sees and changes them: what the tools that change files work with."""

from __future__ import annotations

import os
from typing import Protocol

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.files.workspace import Files, FileVersion, OpenedFile, Workspace, WorkspacePath, WrittenFile


class CallFiles(Files, Protocol):
    """One call's files. It changes at most one of them."""

    def remove_file(self, path: WorkspacePath, *, expect: FileVersion) -> None:
        """As `Workspace.remove_file`."""
        ...

    def notices(self, path: WorkspacePath) -> tuple[str, ...]:
        """What whoever reads that file should know."""
        ...

    async def told(self, result: ToolResult) -> ToolResult:
        """The call's result with what became of its change, which a person may be asked about. Hold no lock."""
        ...


class Changes(Protocol):
    """Decides what a change comes to."""

    def of(self, workspace: Workspace, ctx: ToolContext, tool: str) -> CallFiles: ...


class DirectFiles:
    """Changes take effect at once, and nobody remembers them."""

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

    async def told(self, result: ToolResult) -> ToolResult:
        return result


class DirectChanges:
    """For tools that are built on their own, without a gateway."""

    def of(self, workspace: Workspace, ctx: ToolContext, tool: str) -> CallFiles:
        return DirectFiles(workspace)
