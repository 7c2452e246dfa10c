"""Files as calls change them: written and journaled, or staged in review mode, and then a person is asked if one can be
reached.

What a session has staged is what that session reads and goes on from, as long as it waits. Everybody else, commands
and searches too, sees the file as it is on disk. Source: goa, "In review mode, writes are queued for approval".
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from goat_mcp.core import posix
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Ask, Form, Option, Question, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_block, with_notices
from goat_mcp.files.changes.call_files import CallFiles, DirectFiles, JournaledFiles, WriteListener, with_not_kept
from goat_mcp.files.changes.change import Author, Content, sha256_of, sha256_on_disk
from goat_mcp.files.changes.review import Decider, Review, StagedChange
from goat_mcp.files.documents.visible_text import shown_path
from goat_mcp.files.workspace import FileVersion, OpenedFile, Workspace, WorkspacePath, WrittenFile
from goat_mcp.files.workspace.refusals import not_found, stale


class SessionStage:
    """What the sessions of this process have staged and nobody has decided about yet."""

    def __init__(self, review: Review) -> None:
        self.review = review
        self._ids: dict[tuple[str, str], str] = {}
        """By session and `Workspace.key` of the path."""

    def of(self, session: str) -> list[StagedChange]:
        """All of a session that nobody has decided about yet."""
        # A copy: other threads stage, too.
        keys = [key for owner, key in list(self._ids) if owner == session]
        return [staged for key in keys if (staged := self._find(session, key)) is not None]

    def has(self, session: str) -> bool:
        return any(owner == session for owner, _ in list(self._ids))

    def find(self, session: str, path: Path) -> StagedChange | None:
        return self._find(session, self.review.workspace.key(path))

    def _find(self, session: str, key: str) -> StagedChange | None:
        id = self._ids.get((session, key))
        found = None if id is None else self.review.queue.find(id)
        if id is not None and found is None:
            self._ids.pop((session, key), None)
        return found

    def stage(
        self, author: Author, path: Path, former: StagedChange | None, base: Content | None, data: bytes | None
    ) -> StagedChange | None:
        """The change that waits now, instead of `former`; None if the file would be what it is on disk. With no
        `data` the file is to go.

        Raises `ToolError(IO)`.
        """
        after = None if data is None else hashlib.sha256(data).hexdigest()
        is_back = after == (None if base is None else base.sha256)
        queue, key = self.review.queue, (author.session, self.review.workspace.key(path))
        try:
            staged = None if is_back else queue.add(author, path, base, data)
            if former is not None:
                queue.remove(former.id)
        except OSError as problem:
            raise ToolError(
                ErrorCode.IO,
                f"the change of {path} could not be staged: {(problem.strerror or str(problem)).lower()}",
                "Nothing was written. Tell the user: the state directory needs room and must be writable.",
            ) from None
        if staged is None:
            self._ids.pop(key, None)
        else:
            self._ids[key] = staged.id
        for changed in filter(None, (staged, former)):
            self.review.announce(changed.id, changed.author.principal)
        return staged


ASKED_CHARS = 8_000
TOLD_CHARS = 4_000
_DECISION, _FEEDBACK = "decision", "feedback"
_APPROVE, _REJECT, _KEEP = "approve", "reject", "keep"
_CHOICES = (
    Option(_APPROVE, "Apply the change"),
    Option(_REJECT, "Reject it"),
    Option(_KEEP, "Keep it queued for later"),
)
_READ_FLAGS = os.O_RDONLY | posix.O_NOFOLLOW


class StagedFiles(DirectFiles):
    def __init__(self, workspace: Workspace, stage: SessionStage, author: Author, ask: Ask) -> None:
        super().__init__(workspace)
        self._stage = stage
        self._review = stage.review
        self._author = author
        self._ask = ask
        self._staged: StagedChange | None = None
        self._took_back = ""
        """What is on disk, if nothing is left to wait."""

    def stat(self, path: WorkspacePath) -> os.stat_result | None:
        waiting = self._waiting(path)
        if waiting is not None and waiting.after is None:
            return None
        if waiting is not None:
            try:
                return self._review.queue.content_path(waiting.id).stat()
            except FileNotFoundError:  # decided about just now
                pass
        return self.workspace.stat(path)

    def open_file(self, path: WorkspacePath) -> OpenedFile:
        waiting = self._waiting(path)
        if waiting is not None and waiting.after is None:
            raise not_found(path)
        if waiting is not None:
            try:
                fd = os.open(self._review.queue.content_path(waiting.id), _READ_FLAGS)
                return OpenedFile(fd, os.fstat(fd), self.workspace.real_path(path))
            except FileNotFoundError:
                pass
        return self.workspace.open_file(path)

    def write_file(self, path: WorkspacePath, data: bytes, *, expect: FileVersion | None) -> WrittenFile:
        real, base = self._put(path, data, expect)
        sha256 = sha256_of(base if self._staged is None else self._staged.after)
        return WrittenFile(real, FileVersion(sha256, len(data), time.time_ns()), created=base is None)

    def remove_file(self, path: WorkspacePath, *, expect: FileVersion) -> None:
        self._put(path, None, expect)

    def _put(self, path: WorkspacePath, data: bytes | None, expect: FileVersion | None) -> tuple[Path, Content | None]:
        """Stage what is to become of a file. Gives back its real path, and what it held when that was begun."""
        self._review.journal.release(self.workspace, path)
        self.workspace.check_writable(path)
        real, former = self.workspace.real_path(path), self._waiting(path)
        base = self._base(path, expect) if former is None else former.base
        if former is not None and sha256_of(expect) != sha256_of(former.after):
            raise stale(path, "changed since it was read")
        self._staged = self._stage.stage(self._author, real, former, base, data)
        if self._staged is None:
            self._took_back = (
                "There is no such file on disk" if base is None else "The file is on disk as it would become"
            )
        return real, base

    def notices(self, path: WorkspacePath) -> tuple[str, ...]:
        waiting = self._waiting(path)
        if waiting is None:
            return ()
        return (
            f"this is what change {waiting.id} will make of the file; it waits for the user, on disk is the old one",
        )

    async def finish(self, result: ToolResult) -> ToolResult:
        """Raises `ToolError(PERMISSION)` where the person rejects the change."""
        if self._took_back:
            return _staged_result(result, None, f"{self._took_back}: nothing waits for review now.")
        if self._staged is None:
            return result
        staged = self._staged
        diff = await anyio.to_thread.run_sync(partial(self._review.diff, staged, ASKED_CHARS))
        answer = await self._ask(_form(staged, diff))
        decision = answer.text(_DECISION) if answer.reply is Reply.ACCEPTED else _KEEP
        if decision == _APPROVE:
            return await self._applied(result, staged)
        if decision == _REJECT:
            await self._review.reject(staged.id, self._decider())
            said = answer.text(_FEEDBACK)
            raise ToolError(
                ErrorCode.PERMISSION,
                f"the user rejected this change of {staged.path}; nothing was written",
                f"They said: {said}" if said else "Ask them what should be different; do not send the same again.",
            )
        head = (
            f"Staged as change {staged.id}, NOT written: it waits for the user (goat-mcp review apply {staged.id}). "
            "Your own reads and edits of this file go on from it; commands and searches see the old file."
        )
        return _staged_result(result, staged, head, diff if self._author.tool == "Write" else "")

    async def _applied(self, result: ToolResult, staged: StagedChange) -> ToolResult:
        try:
            _, not_kept = await self._review.apply(staged.id, self._decider())
        except ToolError as refused:
            head = f"The user approved it, but it could not be applied: {refused.message}."
            return _staged_result(result, staged, head)
        return with_not_kept(
            replace(result, content=(text_block(with_notices(result.text, ["the user approved this change"])),)),
            not_kept,
        )

    def _decider(self) -> Decider:
        author = self._author
        return Decider(f"form in call {author.call_id}", author.session, author.principal)

    def _waiting(self, path: WorkspacePath) -> StagedChange | None:
        if not self._stage.has(self._author.session):
            return None
        return self._stage.find(self._author.session, self.workspace.real_path(path))

    def _base(self, path: WorkspacePath, expect: FileVersion | None) -> Content | None:
        found = self.workspace.stat(path)
        if expect is None:
            if found is not None:
                raise stale(path, "exists already")
            return None
        if found is None:
            raise stale(path, "was deleted since it was read")
        # what was read may have been a staged change, rejected just now
        if sha256_on_disk(self.workspace, path) != expect.sha256:
            raise stale(path, "changed since it was read")
        return Content(expect.sha256, expect.size, stat.S_IMODE(found.st_mode))


def _form(staged: StagedChange, diff: str) -> Form:
    return Form(
        f"{staged.author.tool} wants to {staged.kind} {shown_path(staged.path)}:\n\n{diff}",
        (
            Question(_DECISION, "Decision", options=_CHOICES, required=True),
            Question(_FEEDBACK, "If you reject it: what should be different?"),
        ),
    )


def _staged_result(result: ToolResult, staged: StagedChange | None, head: str, diff: str = "") -> ToolResult:
    text = f"{head}\nOnce applied: {result.text}" if staged else f"{head}\n{result.text}"
    if diff:
        text = f"{text}\n{diff[:TOLD_CHARS]}"
    facts = {**(result.facts or {}), "staged": staged is not None}
    if staged is not None:
        facts["change_id"] = staged.id
    return replace(result, content=(text_block(text),), facts=facts)


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
