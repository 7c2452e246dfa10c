"""A Read tool over one workspace folder, for the tests of what it shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.files.settings import FileOptions
from goat_mcp.files.workspace import Workspace
from goat_mcp.state.sessions import Sessions
from goat_mcp.tools.read import Read


@dataclass
class Desk:
    """A Read tool over one workspace folder."""

    folder: Path
    options: FileOptions = field(default_factory=FileOptions)
    sessions: Sessions = field(default_factory=Sessions)

    def __post_init__(self) -> None:
        self.folder = self.folder.resolve()
        self.tool = Read(Workspace(self.folder), self.sessions, self.options)

    def file(self, name: str, content: str | bytes) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    async def read(self, file_path: str, **arguments: Any) -> ToolResult:
        return await self.call({"file_path": file_path, **arguments})

    async def call(self, arguments: dict[str, Any]) -> ToolResult:
        return await self.tool.execute(self.tool.validate(arguments), ToolContext(call_id="c1"))

    async def refusal(self, file_path: str, **arguments: Any) -> ToolError:
        with pytest.raises(ToolError) as refused:
            await self.read(file_path, **arguments)
        return refused.value
