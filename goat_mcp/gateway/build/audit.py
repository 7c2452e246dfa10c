"""The record of calls as the settings choose it, in a file that no tool can write."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from goat_mcp.calls.audit import AuditLog
from goat_mcp.calls.audit.call_record import CallRecord, RecordOptions
from goat_mcp.calls.audit.log import AuditSettings
from goat_mcp.core.redaction import Redactor, secrets_among
from goat_mcp.files.workspace import Workspace
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import BrokenSettings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.telemetry import Telemetry


def audit_log(
    chosen: AuditSettings, state: StateDirectory, roots: Sequence[Path], redactor: Redactor, telemetry: Telemetry
) -> AuditLog:
    """The record. Raises `BrokenSettings` where it cannot be written, or tools could write it.

    The record for people is in the state directory, which is closed to tools, wherever the chain is.
    """
    options = RecordOptions(chosen.arguments, chosen.kept_days)
    people = CallRecord(state, options, redactor=redactor, warn=telemetry.warning, pid=os.getpid())
    file = _file(chosen.path, state, roots)
    log = AuditLog(file, chosen, redactor=redactor, warn=telemetry.warning, people=people)
    try:
        log.check()
    except OSError as problem:
        raise BrokenSettings(
            f"the record of calls cannot be written: {problem.strerror}: {problem.filename}",
            "Name another file with audit.path, or another state directory with GOAT_MCP_STATE_DIR.",
        ) from None
    return log


def users_audit_log(named: Sequence[str], workspace: Workspace, state: StateDirectory) -> AuditLog:
    """For what the user decides outside of a gateway: that of the settings which hold in the named workspace, or here.

    Raises `BrokenSettings` where it cannot be written.
    """
    settings = load_settings({"workspace": named} if named else {}, state=state)
    redactor = Redactor(secrets_among(os.environ))
    return audit_log(settings.audit, state, workspace.roots, redactor, Telemetry("error", redactor))


def _file(named: Path | None, state: StateDirectory, roots: Sequence[Path]) -> Path:
    """The file of the record of calls. Raises `BrokenSettings` for one that tools could write (R-AUDIT-1).

    The state directory is closed to tools wherever it lies.
    """
    if named is None:
        return state.path / "audit.jsonl"
    path = named.expanduser().absolute()
    real = path.parent.resolve() / path.name
    root = next((root for root in roots if real.is_relative_to(root.resolve())), None)
    if root is not None and not real.is_relative_to(state.path.resolve()):
        raise BrokenSettings(
            f"audit.path {path} lies in the workspace {root}, where tools could change it",
            "Name a file outside, or leave audit.path out: then it is in the state directory.",
        )
    return path
