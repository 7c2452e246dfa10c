"""Requests of clients about the tasks of upstreams: follow-ups of a call that was decided about when it began.

Nobody is asked again. What the rules or the choice of tools keep from the caller by now is refused, and what a task
brings meets the hooks and the limits that the call's own result would have met. Loaded by the first of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from goat_mcp.calls.pipeline import Pipeline
from goat_mcp.calls.result_limits import ResultLimits
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.core.calling_client import CAPABILITY_MISSING, ClientRequest
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.redaction import redacted_upstream_error
from goat_mcp.core.result import ToolResult, UpstreamTask, error_result
from goat_mcp.core.rights import Rights
from goat_mcp.core.spec import ToolSpec
from goat_mcp.upstreams.calls.task_answers import COMPLETED, ENDS, FAILED, INPUT_REQUIRED, WORKING
from goat_mcp.upstreams.listing.proxy_tool import UpstreamSpec
from goat_mcp.upstreams.pinning.launch_fingerprint import launch_fingerprint
from goat_mcp.upstreams.transports.server_requests import covers, required_for
from goat_mcp.upstreams.upstream import Upstream
from goat_mcp.upstreams.upstreams import Upstreams

_MAX_ENDED = 1000
"""Tasks of which it is remembered how they ended: an upstream may not take that back."""
T = TypeVar("T")


class TaskGone(Exception):
    """There is no such task, or it is not the caller's any more."""


@dataclass(eq=False)
class UpstreamTaskCalls:
    """`why_hidden`: see `ServerVisibility`."""

    pipeline: Pipeline
    catalog: Catalog
    upstreams: Upstreams
    why_hidden: Callable[[Rights], Callable[[ToolSpec], str]]
    _ended: OrderedDict[tuple[str, str, str], str] = field(default_factory=OrderedDict[tuple[str, str, str], str])

    async def state(self, task: UpstreamTask, ctx: ToolContext) -> dict[str, Any]:
        """As `TaskRequests.get` returns it, with a `ToolResult` as its `result`. Raises `ToolError`, `UpstreamError`,
        `TaskGone`."""
        spec, upstream = self._about(task, ctx)
        state = await self._recorded("tasks/get", spec, upstream.calls.tasks.requests.get(task.task_id, ctx), ctx)
        self._check_end(task, state["status"], ctx.principal)
        if state["status"] == INPUT_REQUIRED:
            return await self._asked(task, upstream, state, ctx)
        if state["status"] == COMPLETED:
            return {**state, "result": await self._result(spec, upstream, state["result"], ctx)}
        if state["status"] == FAILED:
            error = UpstreamError(state["error"]["code"], state["error"]["message"], state["error"].get("data"))
            shown = redacted_upstream_error(error, self.pipeline.redactor)
            data = {} if shown.data is None else {"data": shown.data}
            return {**state, "error": {"code": shown.code, "message": shown.message, **data}}
        return state

    async def answer(self, task: UpstreamTask, answers: Mapping[str, Any], ctx: ToolContext) -> None:
        """Raises like `state`."""
        spec, upstream = self._about(task, ctx)
        request = upstream.calls.tasks.requests.update(task.task_id, answers, ctx)
        await self._recorded("tasks/update", spec, request, ctx)

    async def cancel(self, task: UpstreamTask, ctx: ToolContext) -> None:
        """Raises like `state`."""
        spec, upstream = self._about(task, ctx)
        await self._recorded("tasks/cancel", spec, upstream.calls.tasks.requests.cancel(task.task_id, ctx), ctx)

    async def _asked(
        self, task: UpstreamTask, upstream: Upstream, state: dict[str, Any], ctx: ToolContext
    ) -> dict[str, Any]:
        """The state with the questions that are left for the client, once what is known is answered. Raises
        `UpstreamError` for one that the client has not said it can answer (ERA-6)."""
        tasks = upstream.calls.tasks
        questions: dict[str, Any] = state.pop("inputRequests")
        if known := tasks.known_answers(questions):
            await tasks.requests.update(task.task_id, known, ctx)
        left = {key: one for key, one in questions.items() if key not in known}
        for one in left.values():
            required = required_for(ClientRequest(one["method"], one["params"]))
            if ctx.client is not None and not covers(ctx.client.capabilities, required):
                raise UpstreamError(
                    CAPABILITY_MISSING,
                    f"upstream {upstream.config.name} asks something that this request does not declare",
                    {"requiredCapabilities": required},
                )
        return {**state, "inputRequests": left} if left or not known else {**state, "status": WORKING}

    def _about(self, task: UpstreamTask, ctx: ToolContext) -> tuple[UpstreamSpec, Upstream]:
        """The tool whose call it is, and the upstream."""
        catalog = self.catalog.of(ctx.rights)
        if catalog.source_of(task.tool) != task.source:
            raise TaskGone
        spec = catalog.resolve(task.tool).spec
        upstream = self.upstreams.upstream(task.source)
        if not isinstance(spec, UpstreamSpec) or launch_fingerprint(upstream.config.target)[:16] != task.launch:
            raise TaskGone
        if not ctx.rights.permits(spec.rule_name, spec.name):
            raise TaskGone
        if why := self.why_hidden(ctx.rights)(spec):
            raise ToolError(ErrorCode.PERMISSION, f"{spec.name} is denied by now: {why}")
        upstream.calls.admit(spec)
        return spec, upstream

    async def _recorded(self, method: str, spec: UpstreamSpec, request: Awaitable[T], ctx: ToolContext) -> T:
        """Each request but one for a state is a line of the record, as a part of a call that was allowed."""
        audit = self.pipeline.audit
        arguments = {"request": method}
        is_look = method == "tasks/get"
        error_code: str | None = str(ErrorCode.CANCELLED)
        if not is_look:
            decision = partial(audit.decision, spec.rule_name, arguments, ctx, decision="allow", rule="of its own task")
            await audit.off_loop(decision)
        try:
            async with self.pipeline.slots.of(ctx, spec.rule_name):
                answer = await request
            error_code = None
            return answer
        except ToolError as error:
            error_code = str(error.code)
            raise
        except UpstreamError as error:
            error_code = str(error.code)
            raise redacted_upstream_error(error, self.pipeline.redactor) from None
        finally:
            if not is_look:
                await audit.off_loop(partial(audit.outcome, spec.rule_name, ctx, error_code=error_code))

    async def _result(
        self, spec: UpstreamSpec, upstream: Upstream, raw: Mapping[str, Any], ctx: ToolContext
    ) -> ToolResult:
        try:
            result = await upstream.calls.of_result(spec, raw, ctx)
        except ToolError as error:
            result = error_result(error)
        if self.pipeline.hooks:
            result = (await self.pipeline.hooks.post_tool_use(spec, {}, result, ctx)).result
        max_chars = max(spec.max_result_chars or 0, ctx.setting("output.max_chars", self.pipeline.max_chars))
        limits = ResultLimits(spec, max_chars, self.pipeline.spill)
        if not limits.exceeded_by(result):
            return result
        with self.pipeline.spill.used_by(ctx.principal):
            return await anyio.to_thread.run_sync(limits.of, result)

    def _check_end(self, task: UpstreamTask, status: str, principal: str) -> None:
        """Raises `ToolError(UPSTREAM)` for a task that had ended, and ends in another way or not at all by now."""
        key = (principal, task.source, task.task_id)
        before = self._ended.get(key, status)
        if before != status:
            raise ToolError(
                ErrorCode.UPSTREAM, f"the upstream said that the task is {before}, and says now that it is {status}"
            )
        if status in ENDS:
            self._ended[key] = status
            self._ended.move_to_end(key)
            if len(self._ended) > _MAX_ENDED:
                self._ended.popitem(last=False)
