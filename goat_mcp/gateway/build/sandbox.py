"""The sandbox as the settings choose it, around this gateway's workspace. Nothing is tried before something needs it.

Loaded when the first command or confined upstream is to start.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from goat_mcp.calls.audit.rotation import kept_files
from goat_mcp.calls.permissions.file_rules import FileRules
from goat_mcp.commands.sandbox.protected_paths import HiddenSearch
from goat_mcp.commands.sandbox.sandbox import Sandbox
from goat_mcp.commands.sandbox.factory import SandboxServices, sandbox
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.spill import SpillFiles
from goat_mcp.processes import ProcessGuard
from goat_mcp.files.workspace import Workspace
from goat_mcp.files.workspace.protected import protected_reason


def chosen_sandbox(
    settings: Settings,
    workspace: Workspace,
    rules: FileRules,
    state: StateDirectory,
    spill: SpillFiles,
    guard: ProcessGuard,
    *,
    runs_unasked: Callable[[str, str], bool],
) -> Sandbox:
    """`runs_unasked`: whether commands of a session, and a principal, may run without a person seeing each."""
    return sandbox(
        settings,
        SandboxServices(
            roots=lambda: workspace.roots,
            state=state,
            spill=lambda: spill.folder,
            runs_unasked=runs_unasked,
            is_protected=lambda path: protected_reason(path, commits=True) is not None,
            run_at_the_end=guard.run_at_the_end,
            hidden=HiddenSearch(rules.forbids_to_read, rules.never_read) if rules.hide_some else None,
            unchanged=HiddenSearch(rules.forbids_commands_to_write, rules.never_written) if rules.keep_some else None,
            records=lambda: _records_elsewhere(settings.audit.path),
        ),
    )


def _records_elsewhere(named: Path | None) -> list[Path]:
    """The audit record's files, where the user wants them outside the state directory."""
    if named is None:
        return []
    path = named.expanduser()
    return [path, *(kept for _, kept in kept_files(path))]
