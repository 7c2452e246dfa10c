"""The requests of one kind of transport: what runs for one is given its caller, and the way back to its client."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar, cast

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goat_mcp.core.attended_work import AttendedWork, Leave
from goat_mcp.core.context import (
    AnswerNow,
    Restart,
    ToolContext,
    no_progress,
    nothing_afterwards,
    nowhere_else,
    stay_with_client,
)
from goat_mcp.core.errors import ToolError, UpstreamError
from goat_mcp.core.progress import RisingProgress
from goat_mcp.core.result import ToolResult, error_result
from goat_mcp.server.caller_identity import TASKS_EXTENSION, Caller, CallerIdentity
from goat_mcp.server.calling_client import ChannelClient, DeclaredCapabilities, HostModel, LogLevels, SessionNotices
from goat_mcp.server.cancellations import Cancellations
from goat_mcp.server.client_channel import ClientChannel, Context, DirectChannel, MayAnswer, while_open
from goat_mcp.server.client_roots import ROOTS_INPUT, ClientRoots, brings_roots
from goat_mcp.server.elicitation import elicitor
from goat_mcp.server.error_responses import relayed_error
from goat_mcp.server.plain_calls import FastCall, PlainContext
from goat_mcp.server.suspended_call import Pin, SuspendedCall, no_pin
from goat_mcp.server.suspended_calls import Patience, SuspendedCalls, may_change

_CLAUDE_CODE_CALL_ID = "claudecode/toolUseId"
"""`_meta` key under which Claude Code sends the id that the model gave the call."""
Work = Callable[[ToolContext], Awaitable[ToolResult]]


ParamsT = TypeVar("ParamsT", bound=MayAnswer)


class TaskAnswer(dict[str, Any]):
    """What a call is answered with that goes on as a task, as it travels."""


class CallAsTask(Protocol):
    """How one call becomes a task for its client."""

    @property
    def after_s(self) -> float:
        """How long the request waits for it; 0 means until its end."""
        ...

    async def take_over(self, call: SuspendedCall) -> TaskAnswer | None:
        """Go on with the call; None if that is not possible."""
        ...

    async def answer(self, started: ToolResult) -> TaskAnswer:
        """For a call that has made itself a task."""
        ...


AsTask = Callable[[Context, ParamsT, Caller], CallAsTask]


class Requests:
    """Keeps for each handshake session its log level, its roots, and the way to reach it outside calls."""

    def __init__(self, who: CallerIdentity, suspended: SuspendedCalls, cancellations: Cancellations) -> None:
        self._who = who
        self._suspended = suspended
        self._cancellations = cancellations
        self._log_levels = LogLevels()
        self._roots = ClientRoots()
        self._declared = DeclaredCapabilities()
        self._notices: dict[str, SessionNotices] = {}
        self._attended = AttendedWork()

    async def converse(
        self,
        ctx: Context,
        params: ParamsT,
        work: Work,
        pin: Pin = no_pin,
        only_reads: Callable[[], bool] = may_change,
        as_task: AsTask[ParamsT] | None = None,
        answer_now: AnswerNow | None = None,
    ) -> ToolResult | types.InputRequiredResult | TaskAnswer:
        """What the work returns; or a question, if the client has to come back with the answer (design D2).

        `only_reads`: whether it is known that the work changes nothing. `as_task`: how it can become a task, if the
        client knows tasks. `answer_now` answers a plain call that goes on after that; any other work that may go on
        returns early. None if the work may not.

        Raises `MCPError` for what an upstream answered as an error of its own.
        """

        async def body(channel: ClientChannel, leave: Leave | None = None) -> ToolResult:
            context, client = self._context(ctx, channel, leave)
            try:
                return await work(context)
            finally:
                client.call_ended()

        async def suspendable(call: SuspendedCall) -> ToolResult:
            return await body(call, call.leave if answer_now is not None else None)

        def direct(channel: DirectChannel) -> Awaitable[ToolResult]:
            if answer_now is None:
                return body(channel)
            if isinstance(ctx, PlainContext):
                return body(channel, partial(_leave_plain, ctx.call, answer_now))
            return self._attended.run(lambda leave: body(channel, leave))

        try:
            if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                channel = DirectChannel(ctx)
                running = direct(channel)
                return await (running if ctx.request is None else while_open(ctx.request, channel, running))
            caller = self._who.of(ctx)
            principal, owner, *_ = caller
            asked = ctx.session.client_capabilities
            if as_task is not None and asked is not None and asked.extensions and TASKS_EXTENSION in asked.extensions:
                return await self._with_tasks(ctx, params, work, as_task(ctx, params, caller), caller, pin, only_reads)
            if params.request_state is not None:
                answers = params.input_responses or {}
                return await self._suspended.resume(
                    ctx, owner, principal, params.request_state, answers, suspendable, pin=pin, only_reads=only_reads
                )
            if asked is None or not (asked.sampling or asked.elicitation or asked.roots):
                return await direct(DirectChannel(ctx))
            rounds = 1 if brings_roots(ctx.params or {}) else 0
            return await self._suspended.start(ctx, owner, principal, suspendable, pin=pin, rounds_before=rounds)
        except UpstreamError as refused:
            raise relayed_error(refused) from None
        except ToolError as unknowable:
            # Whether the answer counts cannot be known: the shared state is out of reach.
            return error_result(unknowable)

    async def _with_tasks(
        self,
        ctx: Context,
        params: MayAnswer,
        work: Work,
        as_task: CallAsTask,
        caller: Caller,
        pin: Pin,
        only_reads: Callable[[], bool],
    ) -> ToolResult | types.InputRequiredResult | TaskAnswer:
        """For a client that knows tasks: the request is answered while the call goes on, if that takes long."""

        async def body(channel: ClientChannel) -> ToolResult:
            context, client = self._context(ctx, channel)
            try:
                return await work(context.changed(reads_tasks_of=context.call_id))
            finally:
                client.call_ended()

        principal, owner, *_ = caller
        patience = Patience(as_task.after_s, as_task.take_over)
        if params.request_state is not None:
            answers = params.input_responses or {}
            outcome: Any = await self._suspended.resume(
                ctx,
                owner,
                principal,
                params.request_state,
                answers,
                body,
                pin=pin,
                only_reads=only_reads,
                patience=patience,
            )
        else:
            rounds = 1 if brings_roots(ctx.params or {}) else 0
            outcome = await self._suspended.start(
                ctx, owner, principal, body, pin=pin, rounds_before=rounds, patience=patience
            )
        if isinstance(outcome, ToolResult) and (outcome.task_id is not None or outcome.upstream_task is not None):
            return await as_task.answer(outcome)
        return outcome

    def context(self, ctx: Context) -> ToolContext:
        """The context of a request that is answered at once."""
        return self._context(ctx, DirectChannel(ctx))[0]

    def reader(self, ctx: Context) -> ToolContext:
        """Only who the caller is, for what needs no more."""
        caller = self._who.of(ctx)
        return ToolContext(call_id="", session_key=caller.session_key, principal=caller.principal, rights=caller.rights)

    def _context(
        self, ctx: Context, channel: ClientChannel, leave: Leave | None = None
    ) -> tuple[ToolContext, ChannelClient]:
        meta: Mapping[str, Any] = (ctx.params or {}).get("_meta") or {}
        wants_progress = meta.get("progressToken") is not None
        progress = RisingProgress(channel.report_progress) if wants_progress else no_progress
        caller = self._who.of(ctx)
        session_key = caller.session_key
        capabilities = channel.capabilities
        sampling = capabilities.sampling if capabilities is not None else None
        client = ChannelClient(
            channel,
            self._log_levels.of(session_key, ctx.protocol_version, meta),
            _answers_to_upstreams(ctx),
            self._roots,
            self._declared,
            session_key,
            self._notices.get(session_key),
            self._cancellations,
        )
        call_id = os.urandom(8).hex()
        context = ToolContext(
            call_id=call_id,
            do_afterwards=ctx.call.for_call(call_id) if isinstance(ctx, PlainContext) else nothing_afterwards,
            session_key=session_key,
            principal=caller.principal,
            rights=caller.rights,
            meta=meta,
            model_call_id=given if isinstance(given := meta.get(_CLAUDE_CODE_CALL_ID), str) else "",
            client=client,
            client_name=caller.client_name,
            progress=progress,
            wants_progress=wants_progress,
            ask=elicitor(channel, progress if wants_progress else None),
            host_model=HostModel(channel, sampling) if sampling is not None else None,
            leave_client=partial(_leave, leave, channel, client, call_id) if leave is not None else stay_with_client,
            restart=Restart(call_id, channel.record_before) if isinstance(channel, SuspendedCall) else None,
            close_question=channel.close_question if isinstance(channel, SuspendedCall) else nowhere_else,
            client_waits_since_s=(lambda: channel.round_started_s) if isinstance(channel, SuspendedCall) else None,
        )
        return context, client

    def _session_key(self, ctx: Context) -> str:
        return self._who.session_key(ctx, self._who.principal())

    def session_began(self, ctx: Context) -> str:
        """A handshake client has connected. Returns the key of its session."""
        session_key, version = self._session_key(ctx), ctx.protocol_version
        self._notices[session_key] = SessionNotices(ctx.session, lambda: self._log_levels.of(session_key, version, {}))
        return session_key

    def session_ended(self, session_key: str) -> None:
        self._notices.pop(session_key, None)
        self._roots.forget(session_key)
        self._log_levels.forget(session_key)

    def roots_changed(self, ctx: Context) -> str:
        """A client says that its roots have changed. Returns the key of its session."""
        session_key = self._session_key(ctx)
        self._roots.forget(session_key)
        return session_key

    async def set_log_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """Handler of `logging/setLevel`."""
        self._log_levels.set(self._session_key(ctx), params.level)
        return types.EmptyResult()


def _leave_plain(call: FastCall, answer_now: AnswerNow) -> AnswerNow | None:
    return answer_now if call.leave() else None


def _leave(leave: Leave, channel: ClientChannel, client: ChannelClient, own_id: str, call_id: str) -> AnswerNow | None:
    """Only for the call of the client itself, and none that it makes in turn."""
    answer = leave() if call_id == own_id else None
    if answer is not None:
        channel.is_left = True
        client.call_ended()
    return answer


def _answers_to_upstreams(ctx: Context) -> Mapping[str, Any]:
    """Answers to questions that were not ours: a question of ours comes with a state that seals it."""
    params = ctx.params or {}
    answers = params.get("inputResponses")
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS or params.get("requestState") is not None:
        return {}
    if not isinstance(answers, Mapping):
        return {}
    return {key: answer for key, answer in cast("Mapping[str, Any]", answers).items() if key != ROOTS_INPUT}
