"""What becomes of the files that tools change, as the settings choose it: kept for undo, queued for review, staged.

Loaded with the tools.
"""

from __future__ import annotations

from pathlib import Path

from goat_mcp.core.announcements import Announcements
from goat_mcp.files.changes.change_audit import ChangeAudit
from goat_mcp.files.changes.file_changes import FileChanges
from goat_mcp.files.changes.journal import Journal, JournalLimits
from goat_mcp.files.changes.review import Review
from goat_mcp.files.changes.staged import StagedChanges
from goat_mcp.files.editing.options import FileOptions
from goat_mcp.files.workspace import Workspace
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.telemetry import Telemetry


def file_changes(
    options: FileOptions,
    workspace: Workspace,
    state: StateDirectory,
    *,
    announcements: Announcements,
    environment: CommandEnvironment,
    telemetry: Telemetry,
    record: ChangeAudit,
) -> FileChanges:
    """What keeps the old bytes of files, or queues their changes."""

    def warn(path: Path) -> None:
        telemetry.warning("damaged record set aside", path=str(path))

    journal = Journal(state, JournalLimits(options.journal_bytes, options.journal_days), warn)
    review = Review(StagedChanges(state, warn), journal, workspace, announcements, record)
    written = None
    if options.git_stage == "on":
        from goat_mcp.agents.repository_git import GitStager, RepositoryGit

        written = GitStager(RepositoryGit(environment)).stage
    return FileChanges(review, review_mode=options.review_mode, written=written)
