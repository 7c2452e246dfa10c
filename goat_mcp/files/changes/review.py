"""Staged changes, which wait for a person: their queue, looking at them, applying and rejecting them, and the resources
`goat://review` and `goat://review/ID`."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.resources import Announcements, Reading, json_entry, json_reading, last_part, template
from goat_mcp.core.rights import LOCAL
from goat_mcp.files.changes.blobs import WrongContent
from goat_mcp.files.changes.bounded_diff import bounded_diff
from goat_mcp.files.changes.change import Author, Content, parse_record, sha256_of, sha256_on_disk, version_of
from goat_mcp.files.changes.journal import Journal
from goat_mcp.files.workspace import Workspace
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import write_private

_ID = re.compile(r"[0-9a-f]{8}\Z")


@dataclass(frozen=True, slots=True)
class StagedChange:
    """`base` is what the file held when the change was made, None if there was none; `after` what it is to hold,
    None if the file is to be deleted.

    A later change of the same session to the same file replaces this one, under another id: whoever reviewed
    this one has not reviewed that.
    """

    id: str
    at_s: float
    author: Author
    path: Path
    base: Content | None
    after: Content | None

    @property
    def kind(self) -> str:
        return "create" if self.base is None else "delete" if self.after is None else "change"


class StagedChanges:
    """The queue, in `review/` of the state directory, 0600. A record that cannot be read is set aside."""

    def __init__(self, state: StateDirectory, warn: Callable[[Path], None] = lambda path: None) -> None:
        self._state = state
        self._warn = warn

    @property
    def folder(self) -> Path:
        return self._state.folder("review")

    def add(self, author: Author, path: Path, base: Content | None, data: bytes | None) -> StagedChange:
        """`data` is None for a file that is to go. Raises `OSError`."""
        after = None if data is None else Content(hashlib.sha256(data).hexdigest(), len(data))
        staged = StagedChange(secrets.token_hex(4), time.time(), author, path, base, after)
        if data is not None:
            write_private(self.content_path(staged.id), data)
        fields = {"version": 1, **asdict(staged), "path": str(path)}
        write_private(self._record_path(staged.id), json.dumps(fields).encode())
        return staged

    def oldest_first(self) -> list[StagedChange]:
        found = [staged for path in self.folder.glob("*.json") if (staged := self.find(path.stem)) is not None]
        return sorted(found, key=lambda staged: (staged.at_s, staged.id))

    def find(self, id: str) -> StagedChange | None:
        if not _ID.match(id):
            return None
        path = self._record_path(id)
        try:
            return StagedChange(**parse_record(path.read_bytes(), "base", "after"))
        except OSError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError):
            with suppress(OSError):
                path.replace(path.with_name(f"{path.name}.corrupt"))
                self._warn(path)
            return None

    def data(self, staged: StagedChange) -> bytes:
        """What the file is to hold; nothing if it is to be deleted. Raises `OSError`, or `WrongContent` if it was
        damaged."""
        if staged.after is None:
            return b""
        data = self.content_path(staged.id).read_bytes()
        if hashlib.sha256(data).hexdigest() != staged.after.sha256:
            raise WrongContent(str(staged.path))
        return data

    def content_path(self, id: str) -> Path:
        return self.folder / f"{id}.content"

    def remove(self, id: str) -> None:
        """Raises `OSError`, but not if it is gone already."""
        for path in (self._record_path(id), self.content_path(id)):  # a content without a record is nothing
            path.unlink(missing_ok=True)

    def prune(self, days: int) -> None:
        """Drop what nobody has decided about for `days`."""
        oldest_s = time.time() - days * 24 * 3600
        with suppress(OSError):
            for path in self.folder.iterdir():
                with suppress(OSError):
                    if path.stat().st_mtime < oldest_s:
                        path.unlink()

    def _record_path(self, id: str) -> Path:
        return self.folder / f"{id}.json"


class ChangeAudit(Protocol):
    def user_action(
        self, what: str, arguments: Mapping[str, Any], ctx: ToolContext, rule: str
    ) -> AbstractAsyncContextManager[list[str]]:
        """Written before the block runs and after it; the block adds the error codes of what was refused."""
        ...


class NoAudit:
    """For changes that are looked at without a gateway or a terminal."""

    def user_action(
        self, what: str, arguments: Mapping[str, Any], ctx: ToolContext, rule: str
    ) -> AbstractAsyncContextManager[list[str]]:
        return nullcontext(list[str]())


class Decisions(Protocol):
    """Where else a change can be decided about: the first decision counts."""

    def deciding(self, staged: StagedChange, *, apply: bool, by: str) -> AbstractAsyncContextManager[None]:
        """Around carrying a decision out. Raises `ToolError` if somebody else was first."""
        ...


class DecidedHereOnly:
    """For a review that nobody else decides in, and for those who have asked already."""

    def deciding(self, staged: StagedChange, *, apply: bool, by: str) -> AbstractAsyncContextManager[None]:
        return nullcontext()


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
    record: ChangeAudit = field(default_factory=NoAudit)
    decisions: Decisions = field(default_factory=DecidedHereOnly)

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
        except (OSError, WrongContent):
            raise self._damaged(staged) from None
        path = self.workspace.resolve(str(staged.path))
        old = b""
        if self.workspace.stat(path) is not None:
            with self.workspace.open_file(path) as file:
                old = file.read()
        return bounded_diff(old, new, str(staged.path), max_chars)

    async def apply(self, id: str, decider: Decider = TERMINAL) -> tuple[StagedChange, str]:
        """Write one change. Returns it, and why the old bytes are not in the journal (empty: they are).

        Raises `ToolError`: NOT_FOUND; STALE if the file is not the one it was made from. The change then stays.
        """
        async with self.record.user_action("review apply", {"change": id}, decider.context(), decider.rule(id)):
            staged = await anyio.to_thread.run_sync(self.find, id, decider.principal)
            async with (
                self.workspace.lock(staged.path),
                self.decisions.deciding(staged, apply=True, by=decider.where),
            ):
                not_kept = await anyio.to_thread.run_sync(self._apply, id, decider.principal)
        self.announce(id, staged.author.principal)
        return staged, not_kept

    async def reject(self, id: str, decider: Decider = TERMINAL) -> StagedChange:
        """Drop one change. Raises `ToolError(NOT_FOUND)`."""
        async with self.record.user_action("review reject", {"change": id}, decider.context(), decider.rule(id)):
            staged = await anyio.to_thread.run_sync(self.find, id, decider.principal)
            async with self.decisions.deciding(staged, apply=False, by=decider.where):
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
        if self.workspace.key(self.workspace.real_path(path)) != self.workspace.key(staged.path):
            raise self._stale(staged)
        try:
            data = self.queue.data(staged)
        except (OSError, WrongContent):
            raise self._damaged(staged) from None
        now, not_kept = sha256_on_disk(self.workspace, path), ""
        # A file that holds the change already was written before, by a process that could not report it any more.
        if now != sha256_of(staged.after):
            if now != sha256_of(staged.base):
                raise self._stale(staged)
            expect = version_of(staged.base)
            if staged.after is None and expect is not None:
                written = self.journal.remove(self.workspace, path, expect=expect, author=staged.author)
            else:
                written = self.journal.write(self.workspace, path, data, expect=expect, author=staged.author)
            not_kept = written.not_kept
        self.queue.remove(id)
        return not_kept

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


MAX_DIFF_CHARS = 100_000


class ReviewResource:
    entries = (json_entry(REVIEW_URI, "review", "Changes of files that wait for the user's review, oldest first"),)
    templates = (template(f"{REVIEW_URI}/{{id}}", "change", "The diff of one change that waits", "text/plain"),)

    def __init__(self, review: Review) -> None:
        self._review = review

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        if uri == REVIEW_URI:
            waiting = await anyio.to_thread.run_sync(self._review.oldest_first, ctx.principal)
            return json_reading({"waiting": [described(staged) for staged in waiting]})
        id = last_part(uri, f"{REVIEW_URI}/")
        return None if id is None else await anyio.to_thread.run_sync(self._diff, id, ctx.principal)

    def _diff(self, id: str, principal: str) -> Reading | None:
        try:
            return Reading(self._review.diff(self._review.find(id, principal), MAX_DIFF_CHARS), "text/plain")
        except ToolError:
            return None


class ReviewChanges:
    """Announces what other processes make of the queue."""

    def __init__(self, review: Review) -> None:
        self._review = review
        self._seen: frozenset[tuple[str, str]] | None = None

    async def look(self, principals: Collection[str]) -> None:
        """Notify the author of a changed entry and the owner. The first look only remembers."""
        before = self._seen
        waiting = await anyio.to_thread.run_sync(self._review.oldest_first, OWNER)
        self._seen = frozenset((staged.id, staged.author.principal) for staged in waiting)
        for id, principal in sorted(self._seen ^ before if before is not None else ()):
            self._review.announce(id, principal)


def described(staged: StagedChange) -> dict[str, Any]:
    return {
        "id": staged.id,
        "uri": f"{REVIEW_URI}/{staged.id}",
        "path": str(staged.path),
        "kind": staged.kind,
        "tool": staged.author.tool,
        "call_id": staged.author.call_id,
        "principal": staged.author.principal,
        "staged_at": datetime.fromtimestamp(staged.at_s, UTC).isoformat(timespec="seconds"),
        "size": staged.after.size if staged.after else 0,
        "apply": f"goat-mcp review apply {staged.id}",
    }
