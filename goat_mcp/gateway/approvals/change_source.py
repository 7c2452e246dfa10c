"""Changes of files that wait because `files.review_mode` is on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio.to_thread

from goat_mcp.calls.approvals.record import Approval, Kind, Request, Verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.change import sha256_of
from goat_mcp.files.changes.review import OWNER, Decider, Review, StagedChange, StagedChanges

MAX_DIFF_CHARS = 100_000


class ChangeSource:
    """`review_of` finds the review that a change belongs to, `recorded` adds the record of what is decided to it."""

    kind = Kind.CHANGE

    def __init__(
        self,
        changes: StagedChanges,
        review_of: Callable[[StagedChange], Review],
        recorded: Callable[[Review], Review],
        shown: Callable[[str], str],
    ) -> None:
        self._changes = changes
        self._review_of = review_of
        self._recorded = recorded
        self._shown = shown
        self._requests: dict[str, Request] = {}

    def waiting(self) -> Sequence[Request]:
        staged = self._changes.oldest_first()
        self._requests = {one.id: self._requests.get(one.id) or self.request(one) for one in staged}
        return list(self._requests.values())

    def request(self, staged: StagedChange) -> Request:
        return change_request(staged, self._diff(staged), self._shown)

    def _diff(self, staged: StagedChange) -> str:
        try:
            return self._review_of(staged).diff(staged, MAX_DIFF_CHARS)
        except ToolError as refused:
            return f"cannot be shown: {refused.message}"
        except OSError as problem:
            return f"cannot be shown: {problem.strerror}"

    async def approve(self, approval: Approval, verdict: Verdict) -> str:
        """Raises `ToolError`: NOT_FOUND; STALE if the file is not the one that the change was made from."""
        review = await anyio.to_thread.run_sync(self._review, approval)
        staged, not_kept = await review.apply(approval.request.subject, _decider(approval))
        return f"applied {staged.path}{f' (cannot be undone: {not_kept})' if not_kept else ''}"

    async def deny(self, approval: Approval, verdict: Verdict) -> str:
        review = await anyio.to_thread.run_sync(self._review, approval)
        staged = await review.reject(approval.request.subject, _decider(approval))
        return f"rejected {staged.path}"

    def _review(self, approval: Approval) -> Review:
        id = approval.request.subject
        staged = self._changes.find(id)
        if staged is None:
            raise ToolError(ErrorCode.NOT_FOUND, f"no change {id} waits", "Another one has taken its place.")
        return self._recorded(self._review_of(staged))


class QueuedDecisions:
    """Decisions in the form of a call, recorded in the queue as those that are made elsewhere."""

    def __init__(self, store: ApprovalStore, shown: Callable[[str], str]) -> None:
        self._store = store
        self._shown = shown

    @asynccontextmanager
    async def deciding(self, staged: StagedChange, *, apply: bool, by: str) -> AsyncGenerator[None]:
        """Raises `DecidedBefore`."""
        request = change_request(staged, "", self._shown)
        waiting = await anyio.to_thread.run_sync(self._store.open, request, staged.at_s)
        await anyio.to_thread.run_sync(self._store.decide, waiting.id, Verdict(approved=apply), by)
        try:
            yield
        except (ToolError, OSError):
            await anyio.to_thread.run_sync(self._store.reopen, waiting.id)
            raise
        await anyio.to_thread.run_sync(self._store.finish, waiting.id)


def change_request(staged: StagedChange, diff: str, shown: Callable[[str], str]) -> Request:
    author, path = staged.author, shown(str(staged.path))
    return Request(
        kind=Kind.CHANGE,
        subject=staged.id,
        title=f"{author.tool} wants to {staged.kind} {path}",
        principal=author.principal,
        session=author.session,
        tool=author.tool,
        arguments=(("file_path", path),),
        diff=shown(diff),
        asked_by="files.review_mode",
        args_sha256=sha256_of(staged.after),
        facts={"change": staged.id, "file": path, "call_id": author.call_id},
    )


def _decider(approval: Approval) -> Decider:
    return Decider(approval.decided_by, "terminal", OWNER)
