"""The directories a gateway works in and keeps its state in, looked at before anything is built on them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from goat_mcp.settings import BrokenSettings
from goat_mcp.state.directory import StateDirectory


def check_state(state: StateDirectory) -> None:
    """Raises `BrokenSettings` for a state directory that cannot be used, or that others may write."""
    try:
        folder = state.folder()
        mode = folder.stat().st_mode
    except OSError as problem:
        raise BrokenSettings(
            f"state directory {state.path} cannot be used: {problem.strerror}",
            "Name another one with GOAT_MCP_STATE_DIR.",
        ) from None
    if os.name == "posix" and mode & 0o022:
        raise BrokenSettings(
            f"state directory {state.path} can be written by others (mode {mode & 0o777:04o})",
            "Name one that only you can write with GOAT_MCP_STATE_DIR.",
        )


def scope_of(directories: Sequence[Path]) -> str:
    """A short name for a set of workspace directories."""
    return hashlib.sha256("\0".join(str(directory.absolute()) for directory in directories).encode()).hexdigest()[:16]


def named_roots(directories: Sequence[Path]) -> list[Path]:
    """The workspace's directories as absolute paths. Raises `BrokenSettings` for one that is none."""
    roots = [directory.expanduser().absolute() for directory in directories]
    for root in roots:
        if not root.is_dir():
            raise BrokenSettings(f"workspace {root} is not a directory", "Name an existing directory with --workspace.")
    return roots
