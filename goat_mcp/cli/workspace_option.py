"""The workspace of a command that works on files without a gateway: `--workspace`, else the current directory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when a command runs
    from goat_mcp.files.changes.journal import JournalLimits
    from goat_mcp.files.workspace import Workspace
    from goat_mcp.state.directory import StateDirectory


def workspace_here(named: Sequence[str], state: StateDirectory) -> Workspace:
    """Raises `ToolError` where that is no directory, or where nobody named one in / or the home directory."""
    from goat_mcp.files.workspace import Workspace
    from goat_mcp.files.workspace.roots import default_roots
    from goat_mcp.gateway.path_checks import named_roots

    roots = named_roots([Path(name) for name in named]) or default_roots()
    workspace = Workspace(*roots, private=(state.path,))
    _ = workspace.primary  # raises where there is none
    return workspace


def unpruned() -> JournalLimits:
    """The limits of a journal that only adds: how much is kept is for a server to say, which knows the settings."""
    from goat_mcp.files.changes.journal import JournalLimits

    return JournalLimits(total_bytes=sys.maxsize)
