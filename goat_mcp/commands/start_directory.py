"""Where a command starts: in the directory its call names, else where the shell stands, else in the first root."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import Workspace
from goat_mcp.state.sessions import Session


@contextmanager
def start_directory(
    workspace: Workspace, session: Session, workdir: str | None, notices: list[str]
) -> Generator[tuple[str, Path]]:
    """A name that stays what was checked while this is open, and the real path. Raises `ToolError`."""
    asked = workdir or str(session.cwd or workspace.primary)
    try:
        opened = workspace.open_directory(workspace.resolve(asked))
    except ToolError:
        if workdir is not None or session.cwd is None:
            raise
        # The directory the shell stood in was deleted, or is no longer inside the roots.
        session.cwd = None
        notices.append(f"Shell cwd was reset to {workspace.primary}")
        opened = workspace.open_directory(workspace.resolve(str(workspace.primary)))
    with opened:
        if not workspace.contains(opened.real_path):
            raise ToolError(
                ErrorCode.PATH_OUTSIDE,
                f"workdir {asked} is not inside a workspace root",
                f"Use a directory below {', '.join(map(str, workspace.roots))}.",
            )
        by_descriptor = sys.platform == "linux"
        yield (f"/proc/self/fd/{opened.fd}" if by_descriptor else str(opened.real_path)), opened.real_path
