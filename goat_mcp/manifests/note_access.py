"""Which files a call about a memory touches. What is done with them is the tool's business (`memento`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from goat_mcp.core.errors import ToolError
from goat_mcp.core.tool import Access
from goat_mcp.files.memory import Memories, slug
from goat_mcp.files.workspace import Workspace, WorkspacePath

_READ, _LIST = "read", "list"


def note_access(names: Sequence[str], input: Mapping[str, Any], workspace: Workspace, category: str) -> Access:
    """`names` are the parameters: action, name, scope, directory. Raises `ToolError` for a note that is a link."""
    action, name, scope, directory = (str(input.get(one, "")) for one in names)
    memories = Memories(workspace)
    if action == _LIST:
        return _listing(memories, scope, directory, category)
    name = slug(name)
    if not name:
        return Access(category=category)  # the tool refuses it
    if scope == "global":
        asked, real = _of_user(memories, f"{name}.md")
    else:
        asked, real = _of_project(workspace, memories.project_file(name, directory))
    if action == _READ:
        return Access(asked=(asked,), reads=(real,), category=category)
    return Access(asked=(asked,), writes=(real,), category=category)


def _listing(memories: Memories, scope: str, directory: str, category: str) -> Access:
    found: list[tuple[str, str]] = []
    if scope != "global":
        with suppress(ToolError):  # nothing is listed where no folder of notes is
            found.append(_of_project(memories.workspace, memories.project_folder(directory)))
    if scope != "project":
        found.append(_of_user(memories, ""))
    return Access(asked=tuple(one for one, _ in found), reads=tuple(one for _, one in found), category=category)


def _of_project(workspace: Workspace, path: WorkspacePath) -> tuple[str, str]:
    return path.plain, str(workspace.real_path(path))


def _of_user(memories: Memories, name: str) -> tuple[str, str]:
    path = os.path.normpath(memories.global_folder() / name)
    return path, os.path.realpath(path)
