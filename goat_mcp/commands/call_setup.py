"""What a call settles before its command starts: refusals, the directory, and the time limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import Workspace
from goat_mcp.processes.bash_options import BashOptions
from goat_mcp.processes.environment import check_names
from goat_mcp.processes.script_words import kill_of_this_server
from goat_mcp.state.sessions import Session


def refuse_unrunnable(command: str, variables: Mapping[str, str]) -> None:
    """Refuse a command that cannot or must not run, whatever the rules say. `variables` are those that the call sets.

    Raises `ToolError`.
    """
    if "\0" in command:
        raise ToolError(ErrorCode.INPUT, "command: holds a NUL character", "Remove it; write $'\\0' or printf '\\0'.")
    try:
        command.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError(ErrorCode.INPUT, "command: holds a lone surrogate, which is no text", "Remove it.") from None
    check_names(variables)
    if (words := kill_of_this_server(command)) is not None:
        raise ToolError(
            ErrorCode.BLOCKED,
            f"`{words[:200]}` would end goat-mcp itself (process {os.getpid()})",
            "Name a pattern that matches only the process you mean, or use its number.",
        )


@contextmanager
def start_directory(
    workspace: Workspace, session: Session, workdir: str | None, notices: list[str]
) -> Generator[tuple[str, Path]]:
    """A name of the directory that keeps meaning the checked one while this is open, and its real path.

    It is the one that the call names, else the shell's, else the first root. Raises `ToolError`.
    """
    requested = workdir or str(session.cwd or workspace.primary)
    try:
        opened = workspace.open_directory(workspace.resolve(requested))
    except ToolError:
        if workdir is not None or session.cwd is None:
            raise
        # The shell's directory was deleted, or is no longer inside the roots.
        session.cwd = None
        notices.append(f"Shell cwd was reset to {workspace.primary}")
        opened = workspace.open_directory(workspace.resolve(str(workspace.primary)))
    with opened:
        if not workspace.contains(opened.real_path):
            raise ToolError(
                ErrorCode.PATH_OUTSIDE,
                f"workdir {requested} is not inside a workspace root",
                f"Use a directory below {', '.join(map(str, workspace.roots))}.",
            )
        by_descriptor = sys.platform == "linux"
        yield (f"/proc/self/fd/{opened.fd}" if by_descriptor else str(opened.real_path)), opened.real_path


DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
DEFAULT_BACKGROUND_MS = 1_800_000
MAX_BACKGROUND_MS = 7_200_000


@dataclass(frozen=True)
class TimeLimits:
    """How long a command may run, and how long its call waits: None until its end. `timeout_ms` is the call's own."""

    run_s: float
    wait_s: float | None
    timeout_ms: int | None
    notices: tuple[str, ...] = ()


def time_limits(requested_ms: int | None, options: BashOptions, ctx: ToolContext, *, in_background: bool) -> TimeLimits:
    most = MAX_BACKGROUND_MS if in_background else MAX_TIMEOUT_MS
    timeout_ms = None if requested_ms is None else min(requested_ms, most)
    notices = () if timeout_ms == requested_ms else (f"timeout {requested_ms} ms was reduced to {most} ms",)
    auto_s = ctx.setting("bash.auto_background_after_s", options.auto_background_after_s)
    if timeout_ms is not None:
        run_s = timeout_ms / 1000
    else:
        run_s = (DEFAULT_BACKGROUND_MS if in_background or auto_s else DEFAULT_TIMEOUT_MS) / 1000
    wait_s = min(auto_s, ctx.wait_left_s()) if auto_s else None
    if wait_s is not None and run_s <= wait_s:
        wait_s = None
    return TimeLimits(run_s, wait_s, timeout_ms, notices)
