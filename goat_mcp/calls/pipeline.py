"""The one way of every call, built-in or proxied. Stages run in the order they are written here.

`Pipeline.call` never raises but for cancellation and an upstream's own protocol error.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from goat_mcp.calls.admission import Admission
from goat_mcp.calls.audit import AuditLog
from goat_mcp.calls.batch import Batch, BatchOutcome, Turn
from goat_mcp.calls.concurrency_limiter import ConcurrencyLimiter, Permit
from goat_mcp.calls.extensions import ExtensionFailed, Extensions
from goat_mcp.calls.hooks import Hooks
from goat_mcp.calls.meta_call import target_of
from goat_mcp.calls.permissions.permission import Permission
from goat_mcp.calls.result_limits import ResultLimits
from goat_mcp.calls.scheduler import Scheduler
from goat_mcp.catalog.catalog import Resolver
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.redacted_error import redacted_error, redacted_upstream_error
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.result import ToolResult, error_result, text_block
from goat_mcp.core.spec import ToolSpec
from goat_mcp.state.call_log import CallLog
from goat_mcp.state.session_settings import SessionSettings
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.telemetry import Telemetry

if TYPE_CHECKING:  # most gateways have none
    from goat_mcp.calls.extensions.steps import Steps

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


@dataclass(frozen=True)
class Pipeline:
    """Validation, permission, hooks, scheduling, execution, bounds and audit over one catalog."""

    catalog: Resolver
    permission: Permission
    scheduler: Scheduler
    audit: AuditLog
    spill: SpillFiles
    telemetry: Telemetry
    hooks: Hooks = field(default_factory=Hooks)
    extensions: Extensions = field(default_factory=Extensions)
    steps: Steps | None = None
    with_mail: WithMail | None = None
    slots: ConcurrencyLimiter = field(default_factory=ConcurrencyLimiter)
    redactor: Redactor = field(default_factory=Redactor)
    session_settings: SessionSettings | None = None
    calls: CallLog | None = None
    max_chars: int = MAX_CHARS

    @cached_property
    def admission(self) -> Admission:
        return Admission(self.catalog, self.permission, self.hooks, self.audit, self.telemetry)

    async def call(self, name: str, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Run one call to its result. Failures are results with `is_error`.

        Raised are only cancellation and `UpstreamError`, a protocol error that is relayed as it came.
        """
        return await self._through_all_stages(name, arguments, ctx, Turn(Batch()))

    async def call_all(self, requests: Sequence[CallRequest], *, cancelled: anyio.Event | None = None) -> BatchOutcome:
        """Run what one model turn asked for: admitted in request order, run in parallel where calls do not conflict.

        An interrupting denial (`ToolError.interrupts`) begins nothing new; what runs is let finish. Setting
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
                fresh = replace(request.ctx, started_at_s=time.monotonic())
                results[index] = await self._call_in_batch(replace(request, ctx=fresh), turn)
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

    async def _call_in_batch(self, request: CallRequest, turn: Turn) -> ToolResult:
        """An upstream's own protocol error is one call's failure, and none of the others'."""
        try:
            return await self._through_all_stages(request.name, request.arguments, request.ctx, turn)
        except UpstreamError as refused:
            return error_result(ToolError(ErrorCode.UPSTREAM, f"{refused.message} (JSON-RPC {refused.code})"))

    async def _through_all_stages(
        self, name: str, arguments: Mapping[str, Any], ctx: ToolContext, turn: Turn
    ) -> ToolResult:
        rule_name = name
        error_code: str | None = str(ErrorCode.CANCELLED)
        with self.spill.used_by(ctx.principal):
            try:
                if self.session_settings is not None and (changed := await self.session_settings.of(ctx)):
                    ctx = replace(ctx, overrides={**ctx.overrides, **changed})
                tool, arguments, through = target_of(self.catalog.of(ctx.rights), name, arguments)
                rule_name = tool.spec.rule_name
                if not ctx.rights.permits(rule_name):
                    raise ToolError(
                        ErrorCode.TOOL_NOT_IN_CATALOG,
                        f"{rule_name} is not among this agent's tools",
                        "Use another tool.",
                    )

                if self.steps is not None and self.steps.hides(ctx, tool.spec.name):
                    raise ToolError(
                        ErrorCode.TOOL_NOT_IN_CATALOG,
                        f"{rule_name} is hidden in this step",
                        "Use a tool of the newest list.",
                    )

                async with self.slots.of(ctx) as place:
                    ctx = place.ctx

                    def innermost(arguments: Mapping[str, Any]) -> Awaitable[ToolResult]:
                        return self._admit_and_execute(tool, arguments, through, place, turn)

                    call_next = self.extensions.around_call(tool.spec, ctx, innermost)
                    with self.telemetry.at_least(ctx.setting("log_level", None)):
                        result = await call_next(arguments)
                        if self.with_mail is not None:
                            result = await self.with_mail(tool.spec, result, ctx)
                result = await self._bounded(tool.spec, result, ctx)
                error_code = result.error_code or (str(ErrorCode.TOOL) if result.is_error else None)
            except ToolError as error:
                result = error_result(redacted_error(error, self.redactor))
                error_code = str(error.code)
            except UpstreamError as relayed:
                error_code = str(relayed.code)
                raise redacted_upstream_error(relayed, self.redactor) from None
            except Exception as bug:
                self.telemetry.unexpected(ctx.call_id, rule_name, bug)
                error_code = str(ErrorCode.INTERNAL)
                result = error_result(
                    ToolError(
                        ErrorCode.INTERNAL,
                        f"{_failed(rule_name, bug)} failed unexpectedly (call {ctx.call_id})",
                        "The server's log holds the details under this call id; try another way.",
                    )
                )
            finally:
                with self.telemetry.at_least(ctx.setting("log_level", None)):
                    self._record_outcome(rule_name, arguments, ctx, error_code)
        return result

    async def _admit_and_execute(
        self, tool: AnyTool, arguments: Mapping[str, Any], through: ToolSpec | None, place: Permit, turn: Turn
    ) -> ToolResult:
        ctx = place.ctx
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
        async with self.scheduler.slot(
            access,
            session_key=ctx.session_key,
            max_wait_s=ctx.wait_left_s(),
            while_waiting=place.given_away,
        ):
            turn.begin()
            failure: Exception | None = None
            try:
                result = await tool.execute(admitted.input, ctx)
            except ToolError as error:
                result = error_result(redacted_error(error, self.redactor))
            except Exception as other:
                failure = other
                message = other.message if isinstance(other, UpstreamError) else f"failed unexpectedly ({ctx.call_id})"
                code = ErrorCode.UPSTREAM if isinstance(other, UpstreamError) else ErrorCode.INTERNAL
                result = error_result(ToolError(code, message))
        result = await self._after(tool.spec, admitted.arguments, result, ctx, turn)
        if failure is not None:
            raise failure
        if admitted.context:
            result = replace(result, content=(*result.content, text_block(admitted.context)))
        return result

    async def _after(
        self, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult, ctx: ToolContext, turn: Turn
    ) -> ToolResult:
        """The result as hooks leave it. They see every call that ran, also one that failed in a way of its own."""
        if not self.hooks:
            return result
        left = await self.hooks.post_tool_use(spec, arguments, result, ctx)
        for problem in left.problems:
            self.telemetry.unexpected(ctx.call_id, f"{spec.rule_name} (a hook after it)", problem)
        if left.stop is not None:
            turn.batch.interrupt(turn, ToolError(ErrorCode.HOOK_DENIED, left.stop))
        return left.result

    async def _bounded(self, spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        max_chars = max(spec.max_result_chars or 0, ctx.setting("output.max_chars", self.max_chars))
        bounds = ResultLimits(spec, max_chars, self.spill)
        if not bounds.exceeded_by(result):
            return result
        # Shielded: what was done is done, and its caller may still be there to hear of it.
        with anyio.CancelScope(shield=True):
            result = await anyio.to_thread.run_sync(bounds.of, result)
        return result  # noqa: RET504  # returned inside, the type checker takes the scope for one that may swallow

    def _record_outcome(
        self, tool: str, arguments: Mapping[str, Any], ctx: ToolContext, error_code: str | None
    ) -> None:
        if error_code == ErrorCode.TOOL_NOT_FOUND:
            tool = self.redactor.text(tool[:_SHOWN_NAME_CHARS])  # it is whatever a client sent
        self.telemetry.debug("call", tool=tool, call_id=ctx.call_id, outcome=error_code or "ok")
        if self.calls is not None:
            self.calls.record(tool, ctx, error_code=error_code)
        self.audit.outcome(tool, ctx, error_code=error_code, arguments=arguments)


def _failed(rule_name: str, bug: Exception) -> str:
    return f"extension {bug.name}" if isinstance(bug, ExtensionFailed) else rule_name
