"""How a call that needs a person's decision gets one: from a form in its client or from the queue, whichever is first.

A client without forms costs no answer: its call waits a while for a decision from elsewhere, then ends with
`E_APPROVAL_PENDING`; an identical call after the approval runs once.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

from goat_mcp.calls.approvals.options import ApprovalOptions
from goat_mcp.calls.approvals.record import Approval, DecidedBefore, Request, Status, Verdict
from goat_mcp.calls.approvals.store import LEAVE_WITHIN_S, ApprovalStore
from goat_mcp.calls.permissions.approval import form_of, verdict_of
from goat_mcp.core.context import WAIT_LIMIT_S, ToolContext
from goat_mcp.core.elicitation import Answer, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.heartbeat import with_heartbeat

T = TypeVar("T")

LOOK_S = 0.2
"""How often a waiting call looks for a decision from another process."""
READ_AGAIN_S = 2.0
"""Its record is read as often even if the file looks the same: it expires, and a file's time is coarse."""
_REFUSALS = (Reply.DECLINED, Reply.CANCELLED)
"""A person saw the form and did not say yes. The other replies mean that nobody saw it, or nobody answered."""


class AsksPerson(Protocol):
    """Gets a person's decision about a request of a call."""

    async def ask(self, request: Request, ctx: ToolContext) -> Verdict | None:
        """None if nobody decided. Raises `ToolError`."""
        ...

    async def granted(self, ctx: ToolContext) -> Sequence[tuple[Verdict, str]]:
        """What a person granted this session in another process, each with the directory that it is about. What is
        remembered for good is not among it."""
        ...


class FormOnly:
    """Asks in the client and nowhere else (`approval: deny`)."""

    async def ask(self, request: Request, ctx: ToolContext) -> Verdict | None:
        return _verdict(await ctx.ask(form_of(request)), request)

    async def granted(self, ctx: ToolContext) -> Sequence[tuple[Verdict, str]]:
        return ()


@dataclass(frozen=True)
class QueuedApprovals:
    """Puts each request in the user's queue, shows it in the client if that has forms, and takes the first decision."""

    store: ApprovalStore
    options: ApprovalOptions

    async def ask(self, request: Request, ctx: ToolContext) -> Verdict:
        """Raises `ToolError(APPROVAL_PENDING)` if nobody decides in time."""
        try:
            return await self._verdict(request, ctx)
        except ToolError as problem:
            if problem.code is not ErrorCode.NOT_FOUND:
                raise
            raise _over(request.tool, "is no longer in their queue") from None

    async def _verdict(self, request: Request, ctx: ToolContext) -> Verdict:
        request = replace(request, session=self._session_mark(request.session))
        while True:
            found = await _in_thread(self._queued, request, ctx.call_id)
            if not found.is_decided:
                found = await self._decided(found, ctx)
            if not found.is_decided:
                raise _over(request.tool, f"is {found.status.value}: nobody decided in time")
            if (used := await _in_thread(self.store.use, found.id, ctx.call_id)) is not None:
                return _for_session(used, request.session)
            # An identical call beside this one has run by that decision: it was good for one.

    async def granted(self, ctx: ToolContext) -> Sequence[tuple[Verdict, str]]:
        session = self._session_mark(ctx.client_session)
        found = await _in_thread(self.store.granted, ctx.principal, session)
        return [
            (one.verdict, one.request.directory)
            for one in found
            if one.verdict is not None and not one.verdict.remember
        ]

    def _session_mark(self, session_key: str) -> str:
        """A session by its process, too: over stdio every process has one of the same name."""
        return f"{self.store.processes.of_session(session_key)}/{session_key}"

    def _queued(self, request: Request, call_id: str) -> Approval:
        found = self.store.attend(request.subject, request.principal, call_id)
        expires_at_s = time.time() + self.options.expires_s
        return found or self.store.add(replace(request, expires_at_s=expires_at_s), call_id)

    async def _decided(self, waiting: Approval, ctx: ToolContext) -> Approval:
        """The record as it is when it waits no more. Raises `ToolError(APPROVAL_PENDING)` if it still does."""
        began_s = time.monotonic()
        try:
            decided = await self._first_decision(waiting, ctx)
        except anyio.get_cancelled_exc_class():
            # Most hosts wait about a minute for a call: then the request waits on. A person who ends it is faster.
            gave_up = time.monotonic() - began_s >= WAIT_LIMIT_S
            with anyio.move_on_after(LEAVE_WITHIN_S, shield=True), suppress(ToolError):
                await _in_thread(self.store.leave if gave_up else self.store.withdraw, waiting.id)
            raise
        if decided is None:
            decided = await _in_thread(self._left, waiting.id)
        if decided.status is Status.WAITING:
            raise _pending(waiting, shows_apps=ctx.rights.shows_apps)
        return decided

    def _left(self, id: str) -> Approval:
        """The record after its call has stopped waiting: somebody may have decided just now."""
        self.store.leave(id)
        return self.store.find(id)

    async def _first_decision(self, waiting: Approval, ctx: ToolContext) -> Approval | None:
        answer, decided = await first_of(
            partial(ctx.ask, form_of(waiting.request)), partial(self._decision_of, waiting.id)
        )
        if answer is not None and (verdict := _verdict(answer, waiting.request)) is not None:
            return await self._record(waiting, verdict, f"form in {ctx.client_name or 'the client'}")
        if decided is None and answer is not None and answer.reply is Reply.UNAVAILABLE:
            decided = await self._wait_for_queue(waiting, ctx)
        if decided is not None and not await ctx.close_question():
            why = "its client has answered another process, which goes on with it"
            raise ToolError(ErrorCode.CANCELLED, f"the call of {waiting.request.tool} ends here: {why}")
        return decided

    async def _record(self, waiting: Approval, verdict: Verdict, by: str) -> Approval:
        try:
            return await _in_thread(self.store.decide, waiting.id, verdict, by)
        except DecidedBefore as before:
            return before.approval

    async def _wait_for_queue(self, waiting: Approval, ctx: ToolContext) -> Approval | None:
        """The client shows no forms. One that asked for progress waits longer: it sees that its call is alive."""
        limit_s = self.options.wait_s if ctx.wants_progress else min(self.options.wait_s, ctx.wait_left_s())
        message = f"waiting for approval {waiting.short_id}: goat-mcp approve {waiting.short_id}, or goat-mcp ui"
        with ctx.while_elsewhere(), anyio.move_on_after(limit_s):
            if ctx.wants_progress:
                await ctx.progress(0, None, message)
            return await with_heartbeat(partial(self._decision_of, waiting.id), ctx, message)
        return None

    async def _decision_of(self, id: str) -> Approval:
        return await decision_of(self.store, id)


async def decision_of(store: ApprovalStore, id: str) -> Approval:
    """The record as soon as it waits no more: somebody has decided, or its time is over."""
    mark, read_at_s = None, 0.0
    while True:
        now, now_s = await _in_thread(store.mark), time.monotonic()
        if now != mark or now_s - read_at_s >= READ_AGAIN_S:
            mark, read_at_s = now, now_s
            found = await _in_thread(store.find, id)
            if found.status is not Status.WAITING:
                return found
        await anyio.sleep(LOOK_S)


async def first_of(
    ask: Callable[[], Awaitable[Answer]], decision: Callable[[], Awaitable[T]]
) -> tuple[Answer | None, T | None]:
    """Ask in the client and look for a decision from elsewhere at the same time. What is not first is cancelled: a
    form is withdrawn. Both may be there."""
    answer: Answer | None = None
    decided: T | None = None
    failed: Exception | None = None
    async with anyio.create_task_group() as group:

        async def look() -> None:
            nonlocal decided, failed
            try:
                decided = await decision()
            except Exception as problem:  # not out of the group, which would wrap it
                failed = problem
            group.cancel_scope.cancel()

        group.start_soon(look)
        try:
            answer = await ask()
        except Exception as problem:
            failed = problem
        group.cancel_scope.cancel()
    if failed is not None and answer is None and decided is None:
        raise failed
    return answer, decided


def _for_session(used: Approval, session: str) -> Verdict:
    """What was decided, for a call of this session: of what was granted to another one just this call is left."""
    assert used.verdict is not None, "a decided record has a verdict"
    if used.verdict.remember or (used.request.session == session and not used.verdict.taken_back):
        return used.verdict
    return replace(used.verdict, rules=())


def _verdict(answer: Answer, request: Request) -> Verdict | None:
    """What the person said; None if nobody answered."""
    if answer.reply in _REFUSALS:
        return Verdict(approved=False)
    return verdict_of(answer, request)


def _pending(waiting: Approval, *, shows_apps: bool) -> ToolError:
    id = waiting.short_id
    show = " show_approvals shows it to them." if shows_apps else ""
    return ToolError(
        ErrorCode.APPROVAL_PENDING,
        f"{waiting.request.tool} waits for the user's approval ({waiting.request.asked_by}); nothing was done",
        f"Tell the user: approve it with `goat-mcp approve {id}`, on the page that `goat-mcp ui` opens, or refuse it "
        f"with `goat-mcp deny {id}`.{show} Then make the same call again: it runs once.",
        facts={"tool": waiting.request.tool, "approval": id, "expires_at": waiting.request.expires_at_s},
    )


def _over(tool: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.PERMISSION,
        f"{tool} needs the user's approval, and the question {why}; nothing was done",
        "Tell the user; the same call asks them again.",
        facts={"tool": tool},
    )


async def _in_thread(work: Callable[..., T], *arguments: object) -> T:
    # Left alone when cancelled: a locked file must not keep a call, or the server, from ending.
    return await anyio.to_thread.run_sync(work, *arguments, abandon_on_cancel=True)
