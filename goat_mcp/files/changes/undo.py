"""Undoing changes, newest first, if the files still are what the changes made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.blobs import WrongContent
from goat_mcp.files.changes.change import ABSENT, Author, Change, Content, sha256_of, sha256_on_disk, version_of
from goat_mcp.files.changes.journal import Journal
from goat_mcp.files.workspace import Workspace


class UndoOutcome(StrEnum):
    UNDONE = "undone"
    WOULD_UNDO = "would_undo"
    NOTHING_TO_DO = "nothing_to_do"
    """The file is as it was before the change: somebody was faster, or the change never took effect."""
    REFUSED = "refused"


@dataclass(frozen=True)
class UndoAttempt:
    """The result for one change. `why` and `suggestion` are for people, if it was refused."""

    change: Change
    outcome: UndoOutcome
    why: str = ""
    suggestion: str = ""
    code: ErrorCode | None = None


def undone_ids(newest_first: Sequence[Change]) -> frozenset[str]:
    """The changes that are taken back by another one that is not taken back itself."""
    undone: set[str] = set()
    for change in newest_first:
        if change.id not in undone and change.undoes:
            undone.add(change.undoes)
    return frozenset(undone)


@dataclass(frozen=True)
class Undo:
    """Takes changes of one workspace back. Each is journaled itself, as `author`'s."""

    journal: Journal
    workspace: Workspace
    author: Author

    def newest_first(self) -> list[Change]:
        """All changes of files below the workspace."""
        return [change for change in self.journal.records.newest_first() if self.workspace.contains(change.path)]

    async def run(self, newest_first: Sequence[Change], *, dry_run: bool = False) -> list[UndoAttempt]:
        """Undo these changes. If one undo of a file is refused, older ones of that file are refused too."""
        attempts: list[UndoAttempt] = []
        refused: set[str] = set()
        would_hold: dict[str, str] = {}
        for change in newest_first:
            key = self.workspace.key(change.path)
            if key in refused:
                why = f"a later change of {change.path} was not undone"
                attempts.append(UndoAttempt(change, UndoOutcome.REFUSED, why, "Undo that one first.", ErrorCode.STALE))
                continue
            try:
                async with self.workspace.lock(change.path):
                    work = partial(self._one, change, would_hold, dry_run=dry_run)
                    attempt = await anyio.to_thread.run_sync(work)
            except ToolError as error:
                attempt = UndoAttempt(change, UndoOutcome.REFUSED, error.message, error.suggestion, error.code)
            if attempt.outcome is UndoOutcome.REFUSED:
                refused.add(key)
            attempts.append(attempt)
        return attempts

    def _one(self, change: Change, would_hold: dict[str, str], *, dry_run: bool) -> UndoAttempt:
        path = self.workspace.resolve(str(change.path))
        key = self.workspace.key(change.path)
        if self.workspace.key(self.workspace.real_path(path)) != key:
            raise ToolError(ErrorCode.STALE, f"{change.path} is a link by now", "Undo it by hand.")
        now = would_hold[key] if key in would_hold else sha256_on_disk(self.workspace, path)
        before, after = sha256_of(change.before), sha256_of(change.after)
        if now == before and now != after:
            return UndoAttempt(change, UndoOutcome.NOTHING_TO_DO)
        if now != after:
            what = "is gone" if now == ABSENT else "exists again" if after == ABSENT else "has changed since"
            raise ToolError(
                ErrorCode.STALE,
                f"{change.path} {what}; it was left as it is",
                "What came after this change would be lost. Undo it by hand, or take the later change back first.",
            )
        old = None if change.before is None else self._old(change, change.before)
        if dry_run:
            would_hold[key] = before
            return UndoAttempt(change, UndoOutcome.WOULD_UNDO)
        expect = version_of(change.after)
        if old is not None and change.before is not None:
            self.journal.write(
                self.workspace,
                path,
                old,
                expect=expect,
                author=self.author,
                undoes=change.id,
                new_mode=(change.before.mode & 0o777) or None,
            )
        elif expect is not None:
            self.journal.remove(self.workspace, path, expect=expect, author=self.author, undoes=change.id)
        return UndoAttempt(change, UndoOutcome.UNDONE)

    def _old(self, change: Change, before: Content) -> bytes:
        if change.not_kept:
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"the old content of {change.path} was not kept: {change.not_kept}",
                "Restore it from a backup or version control.",
            )
        if before.sha256 == _EMPTY:
            return b""
        try:
            return self.journal.blobs.read(before.sha256)
        except FileNotFoundError:
            why = "is not kept any more"
        except WrongContent:
            why = "was damaged where it was kept"
        except OSError as problem:
            why = f"cannot be read: {problem.strerror or problem}"
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"the old content of {change.path} {why}",
            "Restore it from a backup or version control.",
        )


_EMPTY = hashlib.sha256(b"").hexdigest()
