"""What commands share that change files or decide something for the user, without a gateway."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goat_mcp.calls.audit import AuditLog
    from goat_mcp.files.workspace import Workspace
    from goat_mcp.state.directory import StateDirectory


def is_run_by_a_model() -> bool:
    """Whether a tool has started this command, or one of the programs it was started by: `env -u` hides the mark from
    the command alone."""
    from goat_mcp.processes.process_guard import MARKER_VARIABLE
    from goat_mcp.processes.process_table import ancestors, environment_contains

    mark = f"{MARKER_VARIABLE}=".encode()
    return bool(os.environ.get(MARKER_VARIABLE)) or any(environment_contains(pid, mark) for pid in ancestors())


def refuse_if_run_by_a_model(what: str) -> None:
    """Raises `ToolError(PERMISSION)` in a command that a tool has started."""
    from goat_mcp.core.errors import ErrorCode, ToolError

    if is_run_by_a_model():
        raise ToolError(ErrorCode.PERMISSION, f"a command that a model runs cannot {what}", "Ask the user to run this.")


def command_workspace(named: Sequence[str], state: StateDirectory) -> Workspace:
    """Raises `ToolError` where that is no directory, or where nobody named one in / or the home directory."""
    from goat_mcp.files.workspace import Workspace
    from goat_mcp.files.workspace.roots import default_roots
    from goat_mcp.gateway.build.working_directories import named_roots

    roots = named_roots([Path(name) for name in named]) or default_roots()
    workspace = Workspace(*roots, private=(state.path,))
    _ = workspace.primary  # raises where there is none
    return workspace


def command_audit_log(named: Sequence[str], workspace: Workspace, state: StateDirectory) -> AuditLog:
    """That of the settings in force here. Raises `BrokenSettings` where it cannot be written."""
    from goat_mcp.gateway.build.audit import users_audit_log

    return users_audit_log(named, workspace, state)


@contextmanager
def record_refusals(named: Sequence[str], what: str) -> Generator[None]:
    """Record that somebody wanted what the block refuses them, as far as that can be recorded from where they are."""
    from goat_mcp.core.context import ToolContext
    from goat_mcp.core.errors import ToolError

    try:
        yield
    except ToolError as refused:
        ctx = ToolContext(call_id=secrets.token_hex(8), session_key="terminal", client_name="goat-mcp")
        with suppress(ToolError, OSError):  # a command in a sandbox has no way to the record
            from goat_mcp.state.directory import StateDirectory

            state = StateDirectory.default()
            log = command_audit_log(named, command_workspace(named, state), state)
            log.decision(what, {}, ctx, decision="deny", rule=str(refused.code))
            log.outcome(what, ctx, error_code=str(refused.code))
        raise
