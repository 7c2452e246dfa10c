"""Undoing changes, newest first, if the files still are what the changes made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.blobs import WrongContent
from goat_mcp.files.changes.bounded_diff import bounded_diff
from goat_mcp.files.changes.change import ABSENT, UNDO, Author, Change, Content, sha256_of, sha256_on_disk, version_of
from goat_mcp.files.changes.journal import Journal
from goat_mcp.files.changes.review import ChangeAudit
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

    @property
    def in_words(self) -> str:
        """For people, on the terminal and on the page alike."""
        change = self.change
        match self.outcome:
            case UndoOutcome.REFUSED:
                return f"not undone: {self.why}. {self.suggestion}"
            case UndoOutcome.NOTHING_TO_DO:
                was = f"as it was before {change.author.tool} {change.author.call_id}"
                return f"nothing to undo: {change.path} is {was}"
            case outcome:
                what = "removed again" if change.before is None else "restored"
                done = what if outcome is UndoOutcome.UNDONE else f"would be {what}"
                return f"{done}: {change.path} ({change.author.tool} {change.author.call_id})"


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

    def newest_first(self, since_s: float = 0.0) -> list[Change]:
        """All changes of files below the workspace that were made from `since_s` on."""
        made = self.journal.records.newest_first(since_s)
        return [change for change in made if self.workspace.contains(change.path)]

    def last(self, count: int) -> list[Change]:
        """The last changes that are not undone, newest first."""
        changes = self.newest_first()
        undone = undone_ids(changes)
        return [change for change in changes if change.author.tool != UNDO and change.id not in undone][:count]

    def of_call(self, call_id: str, since_s: float = 0.0) -> list[Change]:
        """The changes of one call that are not undone, newest first; the start of its id is enough. `since_s`: the
        call was not made before. Raises `ToolError`: NOT_FOUND, NO_CHANGE."""
        changes = self.newest_first(since_s)
        undone = undone_ids(changes)
        found = [change for change in changes if call_id and change.author.call_id.startswith(call_id)]
        calls = {change.author.call_id for change in found}
        if call_id in calls:
            found = [change for change in found if change.author.call_id == call_id]
        elif len(calls) != 1:
            what = f"{len(calls)} calls begin with {call_id!r}" if calls else f"no change of a call {call_id!r} here"
            raise ToolError(ErrorCode.NOT_FOUND, what, "See goat-mcp undo --list.")
        left = [change for change in found if change.id not in undone]
        if not left:
            raise ToolError(ErrorCode.NO_CHANGE, f"call {call_id} is undone already", "See goat-mcp undo --list.")
        return left

    async def run_recorded(
        self, newest_first: Sequence[Change], record: ChangeAudit, where: str, client: str
    ) -> list[UndoAttempt]:
        """As `run`, written to the record of calls before and after it. `where` the user asked for it: terminal,
        page."""
        if not newest_first:
            return []
        author = self.author
        ctx = ToolContext(
            call_id=author.call_id, session_key=author.session, principal=author.principal, client_name=client
        )
        calls = ", ".join(dict.fromkeys(change.author.call_id for change in newest_first))
        changes = {"changes": [change.id for change in newest_first]}
        async with record.user_action(UNDO, changes, ctx, f"{where}, calls {calls}") as refused:
            attempts = await self.run(newest_first)
            refused += [str(attempt.code) for attempt in attempts if attempt.code is not None]
        return attempts

    def diffs(self, newest_first: Sequence[Change], max_chars: int) -> dict[Path, str]:
        """By file, from what it holds now to what it held before these changes. Blocking. Raises `ToolError`."""
        oldest = {self.workspace.key(change.path): change for change in newest_first}
        return {change.path: self._diff(change, max_chars) for change in oldest.values()}

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

    def _diff(self, change: Change, max_chars: int) -> str:
        path = self.workspace.resolve(str(change.path))
        now = b""
        if self.workspace.stat(path) is not None:
            with self.workspace.open_file(path) as file:
                now = file.read()
        old = b"" if change.before is None else self._old(change, change.before)
        return bounded_diff(now, old, str(change.path), max_chars)

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
