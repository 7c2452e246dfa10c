"""Calls of one upstream's tools: slots, deadlines, progress, and results that lose nothing but what belongs to the hop.

Contract: FLW-1 to FLW-3, LIF-5, LIF-6, LIF-9, ISO-2, REL-1, REL-2, REL-4. Keeping the connection alive is the
supervisor's business.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import anyio

from goat_mcp.catalog.resource_catalog import UriOwnership
from goat_mcp.core.calling_client import CAPABILITY_MISSING, RootsOf, no_roots
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.result import Block, ToolResult, text_block
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.upstreams.call_timeout import CallClock
from goat_mcp.upstreams.calls.attempts import (
    ConnectionProvider,
    ElicitLogin,
    error_message,
    in_rounds,
    with_login,
    with_retry,
)
from goat_mcp.upstreams.calls.output_check import MISSING, OutputCheck
from goat_mcp.upstreams.calls.upstream_limiter import Permit, UpstreamLimiter
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.envelope import NO_EXTENSIONS, TASKS, strip_result
from goat_mcp.upstreams.faults import TransportFault
from goat_mcp.upstreams.listing.proxy_tool import UpstreamSpec
from goat_mcp.upstreams.pinning.pin_gate import PinGate
from goat_mcp.upstreams.progress import HEARTBEAT_S, ProgressRelay

if TYPE_CHECKING:  # few entries want it
    from goat_mcp.upstreams.calls.held_tasks import UpstreamTasks
    from goat_mcp.upstreams.calls.resource_requests import ResourceRequests
    from goat_mcp.upstreams.calls.visible_results import VisibleResults
    from goat_mcp.upstreams.transports.connection import Connection


class UpstreamCalls:
    """Relays the calls of one upstream's tools."""

    def __init__(
        self,
        config: UpstreamConfig,
        connection_for: Callable[[ToolContext], AbstractAsyncContextManager[ConnectionProvider]],
        output: OutputCheck,
        *,
        uris: UriOwnership | None = None,
        roots: RootsOf = no_roots,
        want: Callable[[], None] = lambda: None,
        gate: PinGate | None = None,
        heartbeat_s: float = HEARTBEAT_S,
        visible: VisibleResults | None = None,
        elicit_login: ElicitLogin | None = None,
        requests: Callable[[], ResourceRequests],
    ) -> None:
        """`connection_for`: the connection that a call takes. `want` starts one, for the sake of its list.

        `uris`: what results point to may be read afterwards (NAM-6). `visible`: makes the text of results visible if
        the entry wants that. `elicit_login`: see `with_login`; None if the upstream takes no logins of ours.
        `requests`: the way of what is no call.
        """
        self._config = config
        self._connection_for = connection_for
        self._uris = uris
        self._roots = roots
        self._want = want
        self._output = output
        self._gate = gate
        self._visible = visible
        self._elicit_login = elicit_login
        self._requests = requests
        self._heartbeat_s = heartbeat_s
        self.limiter = UpstreamLimiter(config.name, config.concurrency)
        self.unknown_blocks = 0
        self._under_way = 0
        self._is_closed = False

    def admit(self, spec: UpstreamSpec) -> None:
        if self._gate is None:
            return
        try:
            self._gate.admit(spec)
        except ToolError:
            # It may have been taken back: that is seen when it runs.
            self._want()
            raise

    def close(self) -> None:
        """Take no new calls."""
        self._is_closed = True

    @cached_property
    def tasks(self) -> UpstreamTasks:
        """Its tasks, for who asks about them and for calls that wait for theirs."""
        from goat_mcp.upstreams.calls.held_tasks import UpstreamTasks

        return UpstreamTasks(self._config, self._requests(), self._roots)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way: no call, also none that waits for an answer of its client, and no read."""
        return not self._under_way and not self.limiter.in_flight

    async def call(self, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Raises `ToolError` for what is wrong between us, `UpstreamError` for the upstream's own JSON-RPC error."""
        config = self._config
        if self._is_closed:
            raise ToolError(
                ErrorCode.UPSTREAM_DOWN,
                f"the entry of upstream {config.name} has changed or gone; the call did not run",
                "List the tools again; if it is still there, call again.",
                facts={"upstream": config.name},
            )
        self._under_way += 1
        try:
            with ctx.while_elsewhere(spec):
                async with self._connection_for(ctx) as provider:
                    way = self._send if self._elicit_login is None else self._send_with_login
                    send = partial(way, provider, spec, arguments, ctx)
                    raw = await in_rounds(config.name, send, ctx.client, allow=config.allow, roots=self._roots)
                    relayed = relayed_result(config.name, raw)
                    result = relayed.result
                    self.unknown_blocks += relayed.unknown_blocks
                    if spec.output_schema is not None and not result.is_error:
                        structured = raw.get("structuredContent", MISSING)
                        await self._output.check(spec.native_name, spec.output_schema, structured)
            if self._visible is not None:
                result = self._visible.of_call(result)
        except AnsweredWithTask as answered:
            result = await self._of_task(spec, answered.raw, ctx)
        except UpstreamError as error:
            if self._visible is None:
                raise
            raise self._visible.of_error(error) from None
        finally:
            self._under_way -= 1
        if self._uris is not None:
            self._uris.note(ctx.session_key, config.source, result.content)
        return result

    async def of_result(self, spec: UpstreamSpec, raw: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """The result of a call that came later, with a task. Raises `ToolError` for one that is none."""
        try:
            relayed = relayed_result(self._config.name, raw)
        except AnsweredWithTask:
            said = f"upstream {self._config.name} completed a task with another task, which is no result"
            raise ToolError(ErrorCode.UPSTREAM, said) from None
        self.unknown_blocks += relayed.unknown_blocks
        result = relayed.result
        if spec.output_schema is not None and not result.is_error:
            await self._output.check(spec.native_name, spec.output_schema, raw.get("structuredContent", MISSING))
        if self._visible is not None:
            result = self._visible.of_call(result)
        if self._uris is not None:
            self._uris.note(ctx.session_key, self._config.source, result.content)
        return result

    async def _of_task(self, spec: UpstreamSpec, raw: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        from goat_mcp.upstreams.calls.task_answers import task_result

        if ctx.reads_tasks_of == ctx.call_id:
            return task_result(self._config, spec, raw)
        return await self.of_result(spec, await self.tasks.held(spec, raw, ctx), ctx)

    async def _send_with_login(
        self,
        provider: ConnectionProvider,
        spec: UpstreamSpec,
        arguments: Mapping[str, Any],
        ctx: ToolContext,
        more: Mapping[str, Any],
    ) -> dict[str, Any]:
        assert self._elicit_login is not None
        return await with_login(
            self._elicit_login, ctx, lambda waiting: self._send(provider, spec, arguments, waiting, more)
        )

    async def _send(
        self,
        provider: ConnectionProvider,
        spec: UpstreamSpec,
        arguments: Mapping[str, Any],
        ctx: ToolContext,
        more: Mapping[str, Any],
    ) -> dict[str, Any]:
        """One round. `more` are members beside name and arguments."""
        provider.check()
        # The permit is returned between rounds, and while the upstream asks within one: a person may think for long.
        async with self.limiter.permit(ctx.wait_left_s(), ctx.principal) as permit:
            run = partial(self._run, provider, spec, arguments, ctx, more, permit)
            try:
                # One of which the operator, too, says that it only reads.
                is_read = spec.side_effect is SideEffect.READ_ONLY
                return await with_retry(provider, run, ctx.wait_left_s, is_read=is_read)
            except TransportFault as failure:
                raise error_message(self._config, failure.fault, is_call=True) from None
            except UpstreamError as refused:
                if not self._may_hold(refused, ctx):
                    raise
        holding = ctx.changed(holds_tasks=True)
        return await self._send(provider, spec, arguments, holding, more)

    def _may_hold(self, refused: UpstreamError, ctx: ToolContext) -> bool:
        """Whether the upstream only wants somebody who reads tasks, and we do so for the caller (ERA-7). A client of
        the stateless era could have said that it knows them: it is refused (ERA-6)."""
        if refused.code != CAPABILITY_MISSING or ctx.holds_tasks or ctx.reads_tasks_of == ctx.call_id:
            return False
        if ctx.client is not None and ctx.client.is_stateless:
            return False
        from goat_mcp.upstreams.calls.task_answers import wants_tasks

        return wants_tasks(refused)

    async def _run(
        self,
        provider: ConnectionProvider,
        spec: UpstreamSpec,
        arguments: Mapping[str, Any],
        ctx: ToolContext,
        more: Mapping[str, Any],
        permit: Permit,
        connection: Connection,
    ) -> dict[str, Any]:
        if self._gate is not None:
            # What was listed and asked for may have changed since, and a new process may offer something else.
            await self._gate.settled(connection, ctx.wait_left_s())
            self._gate.admit(spec, connection)
        config = self._config
        idle_s = config.idle_timeout_s or config.timeout_s
        clock = CallClock(config.timeout_s, idle_s)
        call = partial(
            connection.call_tool,
            spec.native_name,
            arguments,
            meta=ctx.meta,
            input_schema=spec.input_schema,
            more=more,
            client=ctx.client,
            extensions=TASKS if ctx.holds_tasks or ctx.reads_tasks_of == ctx.call_id else NO_EXTENSIONS,
        )
        with connection.callers.one(ctx, clock, permit), clock.scope:
            if not ctx.wants_progress and config.idle_timeout_s is None:
                return await call()
            if (answer := await self._with_progress(call, ctx, clock)) is not None:
                return answer
        provider.probe(connection)
        silent = config.idle_timeout_s is not None and clock.was_silent
        limit = f"was silent for {idle_s:g} s" if silent else f"did not answer within {config.timeout_s:g} s"
        raise ToolError(
            ErrorCode.TIMEOUT,
            f"upstream {config.name} {limit}; the call was cancelled but may have taken effect",
            "Check its outcome before calling again; the operator can raise timeout_s of this upstream.",
            facts={"upstream": config.name, "outcome": "unknown"},
        )

    async def _with_progress(
        self, call: Callable[..., Awaitable[dict[str, Any]]], ctx: ToolContext, clock: CallClock
    ) -> dict[str, Any] | None:
        """The answer; None if the time of the call is over."""
        relay = ProgressRelay(ctx.progress, self._heartbeat_s, ctx.is_left)

        async def on_progress(
            progress: float, total: float | None, message: str | None, meta: Mapping[str, Any] | None = None
        ) -> None:
            clock.heard()
            await relay.report(progress, total, message, meta)

        outcome: dict[str, Any] | Exception | None = None
        async with anyio.create_task_group() as group:
            if ctx.wants_progress:
                group.start_soon(relay.beat)
            try:
                outcome = await call(on_progress=on_progress)
            except (UpstreamError, TransportFault) as failure:
                # Kept for after the group: raised inside, it would arrive as an exception group.
                outcome = failure
            finally:
                relay.end()
                group.cancel_scope.cancel()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


_CARRIES: dict[Any, tuple[tuple[str, type], ...]] = {
    "text": (("text", str),),
    "image": (("data", str), ("mimeType", str)),
    "audio": (("data", str), ("mimeType", str)),
    "resource": (("resource", dict),),
    "resource_link": (("uri", str), ("name", str)),
}
"""Members without which a block of that type is unreadable, and would cost the client the whole result."""
_NAMED_MEMBERS = frozenset({"content", "isError", "structuredContent", "_meta"})


class AnsweredWithTask(Exception):
    """The upstream works on, and has given a task in place of a result."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        super().__init__()
        self.raw = raw


@dataclass(frozen=True)
class Relayed:
    """A result for the client; `unknown_blocks` counts content we could only pass on as its JSON."""

    result: ToolResult
    unknown_blocks: int


def _is_known(block: Any) -> bool:
    """Whether clients can read the block: of a known type, with the text or data that its type is about."""
    if not isinstance(block, dict):
        return False
    block = cast("Block", block)
    kind = block.get("type")
    carried = _CARRIES.get(kind) if isinstance(kind, str) else None
    return carried is not None and all(isinstance(block.get(name), kind) for name, kind in carried)


def relayed_result(server: str, raw: Mapping[str, Any]) -> Relayed:
    """Raises `ToolError(UPSTREAM)` for an answer that is no tool result."""
    kind = raw.get("resultType", "complete")
    if kind == "task":
        raise AnsweredWithTask(raw)
    if kind != "complete":
        raise ToolError(
            ErrorCode.UPSTREAM,
            f"upstream {server} answered with {str(kind)[:40]!r}, which goat-mcp does not relay",
            "Use another tool.",
        )
    result = strip_result(raw)
    content = result.get("content", [])
    if not isinstance(content, list):
        raise ToolError(ErrorCode.UPSTREAM, f"upstream {server} answered with content that is no list of blocks")
    if "content" not in result and "structuredContent" not in result:
        raise ToolError(ErrorCode.UPSTREAM, f"upstream {server} answered without content")
    listed = cast("list[Any]", content)
    blocks: list[Block] = []
    unknown = 0
    for block in listed:
        if _is_known(block):
            blocks.append(block)
        else:
            blocks.append(text_block(json.dumps(block)))
            unknown += 1
    failed = result.get("isError") not in (None, False)  # "yes" is meant as a failure
    other = {key: value for key, value in result.items() if key not in _NAMED_MEMBERS}
    if result.get("structuredContent", "") is None:
        # A value of its own, which `structured` cannot tell from none at all.
        other["structuredContent"] = None
    return Relayed(
        ToolResult(
            content=tuple(blocks),
            is_error=failed,
            structured=result.get("structuredContent"),
            meta=result.get("_meta", {}),
            other=other,
            error_code=str(ErrorCode.UPSTREAM) if failed else None,
        ),
        unknown,
    )
