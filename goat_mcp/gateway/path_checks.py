"""The directories a gateway works in and keeps its state in, looked at before anything is built on them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from goat_mcp.settings.settings import BrokenSettings
from goat_mcp.state.directory import StateDirectory


def check_state(state: StateDirectory) -> None:
    """Raises `BrokenSettings` for a state directory that cannot be used, or that others may write."""
    try:
        folder = state.folder()
        mode = folder.stat().st_mode
    except OSError as problem:
        raise _unusable(state, problem.strerror) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unusable(state, "it may not be written")
    if os.name == "posix" and mode & 0o022:
        raise BrokenSettings(
            f"state directory {state.path} can be written by others (mode {mode & 0o777:04o})",
            "Name one that only you can write with GOAT_MCP_STATE_DIR.",
        )


def refused_by_state(problem: OSError, state: StateDirectory) -> BrokenSettings | None:
    """What to say where the problem is with the state directory or something in it; None for any other."""
    named = problem.filename
    if not isinstance(named, str) or not Path(named).is_relative_to(state.path):
        return None
    below = "" if Path(named) == state.path else f" ({named})"
    return _unusable(state, f"{problem.strerror}{below}")


def _unusable(state: StateDirectory, why: str | None) -> BrokenSettings:
    return BrokenSettings(
        f"state directory {state.path} cannot be used: {why}", "Name another one with GOAT_MCP_STATE_DIR."
    )


def scope_of(directories: Sequence[Path]) -> str:
    """A short name for a set of workspace directories."""
    return hashlib.sha256("\0".join(str(directory.absolute()) for directory in directories).encode()).hexdigest()[:16]


def named_roots(directories: Sequence[Path]) -> list[Path]:
    """The workspace's directories as absolute paths. Raises `BrokenSettings` for one that is none."""
    roots = [directory.expanduser().absolute() for directory in directories]
    for root in roots:
        if not os.path.isdir(root):  # noqa: PTH112  # `Path.is_dir` raises for what may not be looked at
            raise BrokenSettings(f"workspace {root} is not a directory", "Name an existing directory with --workspace.")
    return roots
