"""The way of every call, built-in or of an upstream: each stage once, in the order in which it runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from goat_mcp.calls.admission import Admission
from goat_mcp.calls.audit import AuditLog
from goat_mcp.calls.batch import Batch, BatchOutcome, Turn
from goat_mcp.calls.concurrency_limiter import CallLimiter, Permit
from goat_mcp.calls.extensions import Extension, ExtensionFailed, wrapped
from goat_mcp.calls.hooks import Hooks
from goat_mcp.calls.meta_call import resolve_call
from goat_mcp.calls.permissions.permission import Permission
from goat_mcp.calls.result_limits import ResultLimits
from goat_mcp.calls.scheduler import Scheduler
from goat_mcp.catalog.catalog import Resolver
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.attended_work import Leave
from goat_mcp.core.author_errors import failure_of
from goat_mcp.core.context import AnswerNow, ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.progress import WorkNotices
from goat_mcp.core.redaction import Redactor, redacted_error, redacted_upstream_error
from goat_mcp.core.result import ToolResult, error_result, text_block
from goat_mcp.core.spec import ToolSpec, unknown_tool
from goat_mcp.core.tool import OwnTool
from goat_mcp.state.call_log import CallLog
from goat_mcp.state.session_settings import SessionSettings
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.telemetry import Telemetry

if TYPE_CHECKING:  # most gateways have none
    from goat_mcp.calls.extensions.extension_points import Steps
    from goat_mcp.calls.long_calls import LongCalls
    from goat_mcp.calls.observability.call_metrics import CallMetrics

MAX_CHARS = 30_000
"""Characters of text one result carries inline (`output.max_chars`)."""
_SHOWN_NAME_CHARS = 300
WithMail = Callable[[ToolSpec, ToolResult, ToolContext], Awaitable[ToolResult]]
"""Adds to a call's result what agents wrote to the session that called."""


@dataclass(frozen=True)
class CallRequest:
    """One call of a batch."""

    name: str
    arguments: Mapping[str, Any]
    ctx: ToolContext
    to_the_end: bool = False
    """Whether whoever calls waits for its result: it becomes no background task."""


@dataclass(frozen=True)
class Pipeline:
    """All stages over one catalog. `layers` are the extensions around each call, outermost first."""

    catalog: Resolver
    permission: Permission
    scheduler: Scheduler
    audit: AuditLog
    spill: SpillFiles
    telemetry: Telemetry
    hooks: Hooks = field(default_factory=Hooks)
    layers: Sequence[Extension] = ()
    steps: Steps | None = None
    with_mail: WithMail | None = None
    slots: CallLimiter = field(default_factory=CallLimiter)
    redactor: Redactor = field(default_factory=Redactor)
    session_settings: SessionSettings | None = None
    calls: CallLog | None = None
    metrics: CallMetrics | None = None
    long_calls: LongCalls | None = None
    max_chars: int = MAX_CHARS

    @cached_property
    def admission(self) -> Admission:
        return Admission(self.catalog, self.permission, self.hooks, self.audit, self.telemetry)

    async def call(
        self, name: str, arguments: Mapping[str, Any], ctx: ToolContext, turn: Turn | None = None
    ) -> ToolResult:
        """Run one call to its result. Failures are results with `is_error`. `turn` is its place in a batch.

        Raised are only cancellation and `UpstreamError`, a protocol error that is relayed as it came.
        """
        turn = turn or Turn(Batch())
        rule_name = name
        is_known = False
        error_code: str | None = str(ErrorCode.CANCELLED)
        result = unfinished = ToolResult()  # of a call that is cancelled
        refusal: UpstreamError | None = None
        with self.spill.used_by(ctx.principal):
            try:
                # The settings that this session has changed.
                if self.session_settings is not None and (changed := await self.session_settings.of(ctx)):
                    ctx = replace(ctx, overrides={**ctx.overrides, **changed})
                # The tool that is meant. Other stages never see a meta-tool.
                try:
                    tool, arguments, through = resolve_call(self.catalog.of(ctx.rights), name, arguments)
                    spec = tool.spec
                    rule_name, is_known = spec.rule_name, True
                    self._check_visible(name, spec, ctx)
                except ToolError as unknown:
                    if not self.layers:
                        raise
                    spec, run = unknown_tool(name), _raising(unknown)
                else:
                    run = partial(self._execute, tool, through=through, turn=turn)
                # The number of calls at a time.
                async with self.slots.of(ctx, rule_name) as permit:
                    ctx = permit.ctx
                    with self.telemetry.at_least(ctx.setting("log_level", None)):
                        run = partial(run, permit)
                        if self.layers:
                            run = wrapped(self.layers, spec, ctx, run, self._refused)
                        result = await run(arguments)
                        if self.with_mail is not None and not permit.is_left:
                            result = await self.with_mail(spec, result, ctx)
                result = await self._limited(spec, result, ctx)
                error_code = result.error_code or (str(ErrorCode.TOOL) if result.is_error else None)
            except ToolError as error:
                result = self._refused(error)
                error_code = str(error.code)
            except UpstreamError as relayed:
                error_code = str(relayed.code)
                refusal = redacted_upstream_error(relayed, self.redactor)
                raise refusal from None
            except (Exception, SystemExit, asyncio.CancelledError) as bug:
                if isinstance(bug, asyncio.CancelledError) and _is_cancelled():
                    raise
                self.telemetry.unexpected(ctx.call_id, rule_name, bug)
                error_code = str(ErrorCode.INTERNAL)
                result = error_result(_internal_error(rule_name, ctx, bug))
            finally:
                if self.metrics is not None:
                    elapsed_s = time.monotonic() - ctx.started_at_s
                    self.metrics.record(rule_name if is_known else None, elapsed_s, error_code)
                if self.long_calls is not None and ctx.call_id in self.long_calls.by_call_id:
                    self.long_calls.ended(ctx.call_id, None if result is unfinished else result, refusal)
                record = partial(self._record_outcome, rule_name, arguments, ctx, error_code, result)
                if not ctx.do_afterwards(ctx.call_id, record):
                    await record()
        return result

    async def _execute(
        self, tool: AnyTool, permit: Permit, arguments: Mapping[str, Any], *, through: ToolSpec | None, turn: Turn
    ) -> ToolResult:
        """The stages that extensions wrap."""
        ctx = permit.ctx
        # Validation, permission, hooks before the call, the record of the decision.
        try:
            admitted = await self.admission.admit(tool, arguments, ctx, through=through)
        except ToolError as refusal:
            if refusal.interrupts:
                turn.batch.interrupt(turn, refusal)
            raise
        turn.admitted()
        access = admitted.access
        if access.script_sha256 or access.handler:
            ctx = ctx.changed(script_sha256=access.script_sha256, handler=access.handler)
        # Conflicts with calls that run, then the execution.
        async with self.scheduler.slot(
            access, session_key=ctx.session_key, max_wait_s=ctx.wait_left_s(), while_waiting=permit.released
        ):
            turn.begin()
            notices = WorkNotices(tool.spec.name, ctx)
            failure: BaseException | None = None
            try:
                result = await tool.execute(admitted.input, await notices.start())
            except ToolError as error:
                result = self._refused(error)
            except UpstreamError as relayed:
                failure, result = relayed, error_result(ToolError(ErrorCode.UPSTREAM, relayed.message))
            except (Exception, SystemExit, asyncio.CancelledError) as bug:
                if isinstance(bug, asyncio.CancelledError) and _is_cancelled():
                    raise
                if isinstance(tool, OwnTool):
                    failure = bug
                    result = error_result(ToolError(ErrorCode.INTERNAL, f"failed unexpectedly ({ctx.call_id})"))
                else:
                    self.telemetry.unexpected(ctx.call_id, tool.spec.rule_name, bug)
                    result = self._refused(failure_of(bug))
            await notices.end(failed=result.is_error)
        # Hooks after the call: they see every call that ran, also one that failed in a way of its own.
        if self.hooks:
            result = await self._after_hooks(tool.spec, admitted.arguments, result, ctx, turn)
        if failure is not None:
            raise failure
        if admitted.context:
            result = replace(result, content=(*result.content, text_block(admitted.context)))
        return result

    async def call_all(self, requests: Sequence[CallRequest], *, cancelled: anyio.Event | None = None) -> BatchOutcome:
        """Run what one model turn asked for: admitted in request order, run in parallel where calls do not conflict.

        After an interrupting denial (`ToolError.interrupts`) nothing new starts; running calls may finish. Setting
        `cancelled` ends all of it. Either way each request has its result: an error for what was not run.
        """
        batch = Batch()
        results: dict[int, ToolResult] = {}

        async def run(index: int, request: CallRequest, *, task_status: TaskStatus[None]) -> None:
            scope = anyio.CancelScope()
            turn = Turn(batch, on_admitted=task_status.started, stop=scope.cancel)
            batch.turns.append(turn)
            with scope:
                # Its time begins with its turn: one before it may have waited for a person.
                ctx = replace(request.ctx, started_at_s=time.monotonic())
                try:
                    results[index] = await self._attended_call(request, ctx, turn)
                except UpstreamError as refused:  # this call's failure, and none of the others'
                    message = f"{refused.message} (JSON-RPC {refused.code})"
                    results[index] = error_result(ToolError(ErrorCode.UPSTREAM, message))
            if index not in results:
                results[index] = error_result(batch.ended(turn))
            turn.admitted()

        async def heed_cancelled(cancelled: anyio.Event) -> None:
            await cancelled.wait()
            batch.cancel()

        async with anyio.create_task_group() as watch:
            if cancelled is not None:
                watch.start_soon(heed_cancelled, cancelled)
            async with anyio.create_task_group() as group:
                for index, request in enumerate(requests):
                    if cancelled is not None and cancelled.is_set():
                        batch.cancel()
                    if batch.stopped_by is not None:
                        break
                    await group.start(run, index, request)
            watch.cancel_scope.cancel()
        return BatchOutcome(
            [results.get(index) or error_result(batch.not_run()) for index in range(len(requests))], batch.stopped_by
        )

    async def _attended_call(self, request: CallRequest, ctx: ToolContext, turn: Turn) -> ToolResult:
        """As `call`; one that takes long becomes a background task, as it would for a client."""
        if self.long_calls is None or request.to_the_end:
            return await self.call(request.name, request.arguments, ctx, turn)

        async def call(leave: Leave) -> ToolResult:
            def leave_client(call_id: str) -> AnswerNow | None:
                return leave() if call_id == ctx.call_id else None

            return await self.call(request.name, request.arguments, ctx.changed(leave_client=leave_client), turn)

        return await self.long_calls.attended.run(call)

    def _check_visible(self, name: str, spec: ToolSpec, ctx: ToolContext) -> None:
        """Raises `ToolError` if the caller's rights, or its newest step, leave the tool out."""
        if not ctx.rights.permits(spec.rule_name, spec.name):
            raise ToolError(
                ErrorCode.TOOL_NOT_IN_CATALOG, f"{spec.rule_name} is not among this agent's tools", "Use another tool."
            )
        if self.steps is not None and any(self.steps.hides(ctx, one) for one in (name, spec.name)):
            raise ToolError(
                ErrorCode.TOOL_NOT_IN_CATALOG,
                f"{spec.rule_name} is hidden in this step",
                "Use a tool of the newest list.",
            )

    async def _after_hooks(
        self, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult, ctx: ToolContext, turn: Turn
    ) -> ToolResult:
        left = await self.hooks.post_tool_use(spec, arguments, result, ctx)
        for problem in left.problems:
            self.telemetry.unexpected(ctx.call_id, f"{spec.rule_name} (a hook after it)", problem)
        if left.stop is not None:
            turn.batch.interrupt(turn, ToolError(ErrorCode.HOOK_DENIED, left.stop))
        return left.result

    def _refused(self, error: ToolError) -> ToolResult:
        return error_result(redacted_error(error, self.redactor))

    async def _limited(self, spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        max_chars = max(spec.max_result_chars or 0, ctx.setting("output.max_chars", self.max_chars))
        limits = ResultLimits(spec, max_chars, self.spill)
        if result.is_relayed or not limits.exceeded_by(result):
            return result
        # Shielded: the work is done, and its caller may still be there to read of it.
        with anyio.CancelScope(shield=True):
            result = await anyio.to_thread.run_sync(limits.of, result)
        return result  # noqa: RET504  # returned inside, the type checker takes the scope for one that may swallow

    async def _record_outcome(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        ctx: ToolContext,
        error_code: str | None,
        result: ToolResult,
    ) -> None:
        if error_code == ErrorCode.TOOL_NOT_FOUND:
            tool = self.redactor.text(tool[:_SHOWN_NAME_CHARS])  # it is whatever a client sent
        with self.telemetry.at_least(ctx.setting("log_level", None)):
            self.telemetry.debug("call", tool=tool, call_id=ctx.call_id, outcome=error_code or "ok")
        if self.calls is not None:
            self.calls.record(tool, ctx, error_code=error_code)
        outcome = partial(self.audit.outcome, error_code=error_code, arguments=arguments, result_chars=result.chars)
        await self.audit.off_loop(partial(outcome, tool, ctx))


def _raising(error: ToolError) -> Callable[[Permit, Mapping[str, Any]], Awaitable[ToolResult]]:
    async def run(permit: Permit, arguments: Mapping[str, Any]) -> ToolResult:
        raise error

    return run


def _is_cancelled() -> bool:
    """Whether somebody wants this task to end; otherwise a `CancelledError` of other people's code is its failure."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _internal_error(rule_name: str, ctx: ToolContext, bug: BaseException) -> ToolError:
    failed = f"extension {bug.name}" if isinstance(bug, ExtensionFailed) else rule_name
    return ToolError(
        ErrorCode.INTERNAL,
        f"{failed} failed unexpectedly (call {ctx.call_id})",
        "The server's log holds the details under this call id; try another way.",
    )
