"""What a person can do about staged changes: look at them, apply them, reject them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.resources import Announcements
from goat_mcp.core.rights import LOCAL
from goat_mcp.files.changes.blobs import NotTheContent
from goat_mcp.files.changes.change_audit import ChangeAudit, Unrecorded
from goat_mcp.files.changes.journal import Journal, Journaled
from goat_mcp.files.changes.shown_diff import shown_diff
from goat_mcp.files.changes.staged import StagedChange, StagedChanges
from goat_mcp.files.workspace import FileVersion, Workspace
from goat_mcp.files.workspace.opened import hash_of

REVIEW_URI = "goat://review"
OWNER = LOCAL
"""Who is at the terminal, or has started us over stdio: the user, who decides about everybody's changes."""


@dataclass(frozen=True, slots=True)
class Decider:
    """Who decides about changes, and where: at the terminal, or in the form of a call."""

    where: str
    session: str
    principal: str

    def rule(self, id: str) -> str:
        """What made the decision, for the record."""
        return f"{self.where}, change {id[:40]}"

    def context(self) -> ToolContext:
        """That of a decision of theirs, for the record."""
        return ToolContext(call_id=secrets.token_hex(8), session_key=self.session, principal=self.principal)


TERMINAL = Decider("terminal", "terminal", OWNER)


@dataclass(frozen=True)
class Review:
    """The staged changes of files below one workspace. A principal that is not the owner sees its own (R-HTTP-3)."""

    queue: StagedChanges
    journal: Journal
    workspace: Workspace
    announcements: Announcements
    record: ChangeAudit = field(default_factory=Unrecorded)

    def oldest_first(self, principal: str) -> list[StagedChange]:
        return [staged for staged in self.queue.oldest_first() if self._is_shown(staged, principal)]

    def find(self, id: str, principal: str) -> StagedChange:
        """Raises `ToolError(NOT_FOUND)`, also for a change of another principal."""
        staged = self.queue.find(id)
        if staged is None or not self._is_shown(staged, principal):
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"no change {id[:40]!r} waits here",
                "It was decided about, or another one has taken its place. See goat-mcp review list.",
            )
        return staged

    def diff(self, staged: StagedChange, max_chars: int) -> str:
        """From what is on disk now to what is staged. Blocking."""
        try:
            new = self.queue.data(staged)
        except (OSError, NotTheContent):
            raise self._damaged(staged) from None
        path = self.workspace.resolve(str(staged.path))
        old = b""
        if self.workspace.stat(path) is not None:
            with self.workspace.open_file(path) as file:
                old = file.read()
        return shown_diff(old, new, str(staged.path), max_chars)

    async def apply(self, id: str, decider: Decider = TERMINAL) -> tuple[StagedChange, str]:
        """Write one change. Returns it, and why the old bytes are not in the journal (empty: they are).

        Raises `ToolError`: NOT_FOUND; STALE if the file is not the one it was made from. The change then stays.
        """
        with self.record.user_action("review apply", {"change": id}, decider.context(), decider.rule(id)):
            staged = await anyio.to_thread.run_sync(self.find, id, decider.principal)
            async with self.workspace.lock(staged.path):
                not_kept = await anyio.to_thread.run_sync(self._apply, id, decider.principal)
        self.announce(id, staged.author.principal)
        return staged, not_kept

    async def reject(self, id: str, decider: Decider = TERMINAL) -> StagedChange:
        """Drop one change. Raises `ToolError(NOT_FOUND)`."""
        with self.record.user_action("review reject", {"change": id}, decider.context(), decider.rule(id)):
            staged = await anyio.to_thread.run_sync(self.find, id, decider.principal)
            await anyio.to_thread.run_sync(self.queue.remove, id)
        self.announce(id, staged.author.principal)
        return staged

    def announce(self, id: str, principal: str) -> None:
        """A change of this principal has come, or has been decided about."""
        for reader in dict.fromkeys((principal, OWNER)):
            self.announcements.changed(REVIEW_URI, reader)
            self.announcements.changed(f"{REVIEW_URI}/{id}", reader)

    def _is_shown(self, staged: StagedChange, principal: str) -> bool:
        return principal in (OWNER, staged.author.principal) and self.workspace.contains(staged.path)

    def _apply(self, id: str, principal: str) -> str:
        staged = self.find(id, principal)  # again: it may have been decided about while the lock was waited for
        path = self.workspace.resolve(str(staged.path))
        if self.workspace.real_path(path) != staged.path:
            raise self._stale(staged)
        try:
            data = self.queue.data(staged)
        except (OSError, NotTheContent):
            raise self._damaged(staged) from None
        now = ""
        if self.workspace.stat(path) is not None:
            with self.workspace.open_file(path) as file:
                now = hash_of(file.fd)
        outcome = Journaled(None, "", "")
        if now != (
            staged.after.sha256 if staged.after else ""
        ):  # else it was written before, and whoever did it could not say so any more
            if now != (staged.base.sha256 if staged.base else ""):
                raise self._stale(staged)
            expect = None if staged.base is None else FileVersion(staged.base.sha256, staged.base.size, 0)
            if staged.after is None and expect is not None:
                outcome = self.journal.remove(self.workspace, path, expect=expect, author=staged.author)
            else:
                outcome = self.journal.write(self.workspace, path, data, expect=expect, author=staged.author)
        self.queue.remove(id)
        return outcome.not_kept

    def _stale(self, staged: StagedChange) -> ToolError:
        return ToolError(
            ErrorCode.STALE,
            f"{staged.path} has changed since change {staged.id} was staged; it still waits",
            f"Put the file back as it was, or reject the change (goat-mcp review reject {staged.id}) "
            "and have it made again.",
        )

    def _damaged(self, staged: StagedChange) -> ToolError:
        return ToolError(
            ErrorCode.IO,
            f"the staged content of change {staged.id} cannot be read any more",
            f"Reject it (goat-mcp review reject {staged.id}) and have the change made again.",
        )
