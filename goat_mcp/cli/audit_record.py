"""The record of calls, for a command that changes something without a gateway."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when a command runs
    from goat_mcp.calls.audit import AuditLog
    from goat_mcp.files.workspace import Workspace
    from goat_mcp.state.directory import StateDirectory


def record_here(named: Sequence[str], workspace: Workspace, state: StateDirectory) -> AuditLog:
    """That of the settings in force here. Raises `BrokenSettings` where it cannot be written."""
    from goat_mcp.core.redaction import Redactor, secrets_among
    from goat_mcp.gateway.build.audit import audit_log
    from goat_mcp.settings.loading import load_settings
    from goat_mcp.state.telemetry import Telemetry

    settings = load_settings({"workspace": named} if named else {}, state=state)
    redactor = Redactor(secrets_among(os.environ))
    return audit_log(settings.audit, state, workspace.roots, redactor, Telemetry("error", redactor))


@contextmanager
def refusals_recorded(named: Sequence[str], what: str) -> Generator[None]:
    """Record that somebody wanted what the block refuses them, as far as that can be recorded from where they are."""
    from goat_mcp.core.context import ToolContext
    from goat_mcp.core.errors import ToolError

    try:
        yield
    except ToolError as refused:
        ctx = ToolContext(call_id=secrets.token_hex(8), session_key="terminal")
        with suppress(ToolError, OSError):  # a command in a sandbox has no way to the record
            from goat_mcp.cli.workspace_option import workspace_here
            from goat_mcp.state.directory import StateDirectory

            state = StateDirectory.default()
            log = record_here(named, workspace_here(named, state), state)
            log.decision(what, {}, ctx, decision="deny", rule=str(refused.code))
            log.outcome(what, ctx, error_code=str(refused.code))
        raise
