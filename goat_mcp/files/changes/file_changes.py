"""Between the tools that change files and the workspace: the journal, and the review if it is on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from goat_mcp.core.context import ToolContext
from goat_mcp.files.changes.call_files import CallFiles, JournaledFiles, WriteListener
from goat_mcp.files.changes.change import Author
from goat_mcp.files.changes.review import Review
from goat_mcp.files.changes.staged_files import SessionStage, StagedFiles
from goat_mcp.files.workspace import Workspace


class FileChanges:
    """The `Changes` of a gateway: journaled, or staged if `review_mode` says so."""

    def __init__(self, review: Review, *, review_mode: bool, written: WriteListener | None = None) -> None:
        """`written` is called for each file that was written at once; not for those that a person applies later."""
        self.review = review
        self._written = written
        self._stage = SessionStage(review) if review_mode else None

    def of(self, workspace: Workspace, ctx: ToolContext, tool: str) -> CallFiles:
        author = Author(tool, ctx.call_id, ctx.session_key, ctx.principal)
        if self._stage is None:
            return JournaledFiles(workspace, self.review.journal, author, self._written)
        return StagedFiles(workspace, self._stage, author, ctx.ask)

    def waiting_of(self, session: str) -> Mapping[Path, tuple[str, Path | None]]:
        """What is to become of the files that a session has changed, as long as it waits for a person: the change's id,
        and the file that holds what it is to hold (None: it is to go). Blocking."""
        if self._stage is None:
            return {}
        queue = self.review.queue
        return {
            staged.path: (staged.id, queue.content_path(staged.id) if staged.after else None)
            for staged in self._stage.of(session)
        }

    def prune(self) -> None:
        """Forget what is too old or too much. Blocking."""
        self.review.journal.prune()
        self.review.queue.prune(self.review.journal.limits.days)
