"""Names that Windows made for longer ones (`SECRET~1`), met in WSL: a drive opens files by them, and rules have others.

On Windows itself they are the matter of `windows_paths`.
"""

from __future__ import annotations

from pathlib import Path

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace.refusals import shown
from goat_mcp.files.workspace.windows_paths import looks_short


def refuse_short_names(real: Path, root: Path) -> None:
    """Raises `ToolError(INPUT)` for a path below a root that was opened in WSL by a name that no directory lists."""
    if not platform.IN_WSL or "~" not in str(real):
        return
    names = real.parts[len(root.parts) :]
    for depth, name in enumerate(names):
        folder = root.joinpath(*names[:depth])
        if looks_short(name) and (folder / name).exists() and name.lower() not in _listed(folder):
            raise ToolError(
                ErrorCode.INPUT,
                f"{shown(real)} holds {shown(name)}, a short form of another name",
                "Send the name as a directory listing shows it.",
            )


def _listed(folder: Path) -> set[str]:
    try:
        return {entry.name.lower() for entry in folder.iterdir()}
    except OSError:
        return set()
