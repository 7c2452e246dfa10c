"""What a tool does with files it was asked to change. A `Workspace` does it on disk; others may stand before one."""

from __future__ import annotations

import os
from typing import Protocol

from goat_mcp.files.workspace.opened import FileVersion, OpenedFile
from goat_mcp.files.workspace.roots import WorkspacePath
from goat_mcp.files.workspace.writing import WrittenFile


class Files(Protocol):
    """Each method means, and raises, what that of `Workspace` does."""

    def stat(self, path: WorkspacePath) -> os.stat_result | None: ...

    def open_file(self, path: WorkspacePath) -> OpenedFile: ...

    def write_file(self, path: WorkspacePath, data: bytes, *, expect: FileVersion | None) -> WrittenFile: ...
