"""Calls of an agent in a worktree: `@`, and a search that names no directory, mean the worktree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from goat_mcp.agents.loop import CallTools, ToolCall
from goat_mcp.core.names import TOOL_ALIASES
from goat_mcp.core.result import ToolResult

_FILE_TOOLS = frozenset({"Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep", "Bash"})
_RELATIVE_TOOLS = frozenset({"file-system__read", "file-system__write"})
"""Those that take relative paths."""
_PATH_FIELDS = frozenset({"file_path", "notebook_path", "path", "directory", "workdir", "cwd", "filePath"})
_SEARCHES = frozenset({"Glob", "Grep"})


@dataclass(frozen=True)
class WorktreeCalls:
    """A `CallTools` around another one. The worktree is where the call's rights allow it to write."""

    call: CallTools

    async def __call__(self, calls: Sequence[ToolCall]) -> Sequence[ToolResult]:
        return await self.call([_moved(call) if call.ctx.rights.writes_below else call for call in calls])


def _moved(call: ToolCall) -> ToolCall:
    name = TOOL_ALIASES.get(call.name, call.name)
    if name not in _FILE_TOOLS and name not in _RELATIVE_TOOLS:
        return call  # an `@` of others is none of ours: @scope/package
    directory = call.ctx.rights.writes_below
    takes_relative = name in _RELATIVE_TOOLS
    arguments: dict[str, Any] = {
        key: _path(value, directory, takes_relative) if key in _PATH_FIELDS and isinstance(value, str) else value
        for key, value in call.arguments.items()
    }
    if name in _SEARCHES and not arguments.get("path") and not arguments.get("directory"):
        arguments["path"] = directory
    return replace(call, arguments=arguments)


def _path(path: str, directory: str, takes_relative: bool) -> str:
    if path.startswith("@"):
        return f"{directory}/{path[1:].lstrip('/')}".rstrip("/")
    return f"{directory}/{path}" if takes_relative and path and not path.startswith("/") else path
