"""Edit and Write over one workspace folder, for the tests of what they change."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.files.settings import EditOptions, FileOptions
from goat_mcp.files.workspace import Workspace
from goat_mcp.state.sessions import ReadRecord, Sessions
from goat_mcp.tools.edit import Edit
from goat_mcp.tools.write import Write

UNCHECKED = FileOptions(read_before_write="off")


@dataclass
class Desk:
    """Both tools over one folder, sharing one client's session."""

    folder: Path
    options: FileOptions = UNCHECKED
    edit_options: EditOptions = field(default_factory=EditOptions)
    sessions: Sessions = field(default_factory=Sessions)

    def __post_init__(self) -> None:
        self.folder = self.folder.resolve()
        self.workspace = Workspace(self.folder)

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def has_read(self, path: Path, session_key: str = "local", *, whole: bool = True) -> None:
        """What Read leaves behind."""
        found = path.stat()
        seen = ReadRecord(hashlib.sha256(path.read_bytes()).hexdigest(), found.st_size, found.st_mtime_ns, whole)
        self.sessions.of(session_key).reads.record(str(path), seen)

    async def edit(self, path: Path | str, session_key: str = "local", **arguments: Any) -> ToolResult:
        tool = Edit(self.workspace, self.sessions, self.options, self.edit_options)
        context = ToolContext(call_id="t", session_key=session_key)
        return await tool.execute(tool.validate({"file_path": str(path), **arguments}), context)

    async def write(self, path: Path | str, content: str, **arguments: Any) -> ToolResult:
        tool = Write(self.workspace, self.sessions, self.options)
        given = {"file_path": str(path), "content": content, **arguments}
        return await tool.execute(tool.validate(given), ToolContext(call_id="t"))

    async def refused_edit(self, path: Path | str, **arguments: Any) -> ToolError:
        with pytest.raises(ToolError) as refusal:
            await self.edit(path, **arguments)
        return refusal.value

    async def refused_write(self, path: Path | str, content: str, **arguments: Any) -> ToolError:
        with pytest.raises(ToolError) as refusal:
            await self.write(path, content, **arguments)
        return refusal.value


def state_of(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Everything below a folder: bytes, times and modes of files."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
