"""What the tests of Glob and Grep share: a folder of files with known times, and calls over it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.files.search.engine import SearchEngine
from goat_mcp.files.workspace import Workspace
from goat_mcp.tools.glob import Glob
from goat_mcp.tools.grep import Grep

NOW_S = 1_700_000_000


@dataclass(frozen=True)
class Folder:
    """A workspace folder. Files written later are newer, by a second each."""

    root: Path
    engine: SearchEngine
    workspace: Workspace
    written: list[Path] = field(default_factory=list[Path])

    def write(self, name: str, content: str | bytes = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.written.append(path)
        time_s = NOW_S + len(self.written)
        os.utime(path, (time_s, time_s))
        return path

    def paths(self, *names: str) -> list[str]:
        return [str(self.root / name) for name in names]

    async def grep(self, pattern: str, **arguments: Any) -> ToolResult:
        tool = Grep(self.workspace, self.engine)
        return await tool.execute(tool.validate({"pattern": pattern, **arguments}), ToolContext(call_id="test"))

    async def glob(self, pattern: str, **arguments: Any) -> ToolResult:
        tool = Glob(self.workspace, self.engine)
        return await tool.execute(tool.validate({"pattern": pattern, **arguments}), ToolContext(call_id="test"))

    async def content(self, pattern: str, **arguments: Any) -> list[str]:
        """Content lines, paths relative to the folder."""
        result = await self.grep(pattern, output_mode="content", **arguments)
        return [line.replace(f"{self.root}/", "") for line in result.text.split("\n")]

    async def names(self, pattern: str, **arguments: Any) -> list[str]:
        """Names that Glob gives, relative to the folder."""
        result = await self.glob(pattern, **arguments)
        return [line.replace(f"{self.root}/", "") for line in result.text.split("\n")]

    async def matching(self, pattern: str, **arguments: Any) -> list[str]:
        """Files that Grep gives, relative to the folder."""
        result = await self.grep(pattern, **arguments)
        return [line.replace(f"{self.root}/", "") for line in result.text.split("\n")]


def folder(root: Path, **options: Any) -> Folder:
    return Folder(root, SearchEngine(**options), Workspace(root))
