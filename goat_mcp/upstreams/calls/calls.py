"""Calls into one upstream: slots, deadlines, progress. What is said of a lost one is in `worded_faults`.

Contract: FLW-1 to FLW-3, LIF-5, LIF-6, LIF-9, ISO-2. Keeping the connection alive is the supervisor's business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio

from goat_mcp.core.client_side import RootsOf, no_roots
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.result import Block, ToolResult, text_block
from goat_mcp.upstreams.calls.concurrency_limiter import Permit, UpstreamLimiter
from goat_mcp.upstreams.calls.connection_provider import (
    ConnectionProvider,
    OfferLogin,
    after_login,
    nobody_to_log_in,
    with_retry,
)
from goat_mcp.upstreams.calls.output_check import MISSING, OutputCheck
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.envelope import strip_result
from goat_mcp.upstreams.faults import LinkFault
from goat_mcp.upstreams.listing.proxy_tool import UpstreamSpec
from goat_mcp.upstreams.pinning.pin_gate import PinGate
from goat_mcp.upstreams.progress import HEARTBEAT_S, CallClock, ProgressRelay
from goat_mcp.upstreams.server_requests.multi_round import in_rounds
from goat_mcp.upstreams.transports.live_connection import LiveConnection

if TYPE_CHECKING:  # few entries want it
    from goat_mcp.upstreams.calls.visible_results import VisibleResults


class UpstreamCalls:
    """Relays the calls of one upstream's tools."""

    def __init__(
        self,
        config: UpstreamConfig,
        connection_for: Callable[[ToolContext], AbstractAsyncContextManager[ConnectionProvider]],
        output: OutputCheck,
        *,
        roots: RootsOf = no_roots,
        want: Callable[[], None] = lambda: None,
        gate: PinGate | None = None,
        heartbeat_s: float = HEARTBEAT_S,
        visible: VisibleResults | None = None,
        offer_login: OfferLogin = nobody_to_log_in,
    ) -> None:
        """`connection_for`: the connection that a call takes. `want` starts one, for the sake of its list.

        `visible`: what makes the text of results visible, where it is to be. `offer_login`: see `after_login`.
        """
        self._config = config
        self._connection_for = connection_for
        self._roots = roots
        self._want = want
        self._output = output
        self._gate = gate
        self._visible = visible
        self._offer_login = offer_login
        self._heartbeat_s = heartbeat_s
        self.slots = UpstreamLimiter(config.name, config.concurrency)
        self.unknown_blocks = 0
        self._under_way = 0
        self._is_closed = False

    def admit(self, spec: UpstreamSpec) -> None:
        if self._gate is None:
            return
        try:
            self._gate.admit(spec)
        except ToolError:
            # It may have been taken back: that is seen where it runs.
            self._want()
            raise

    def close(self) -> None:
        """Take no new calls."""
        self._is_closed = True

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way: no call, also none that waits for an answer of its client, and no read."""
        return not self._under_way and not self.slots.in_flight

    async def call(self, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Raises `ToolError` for what is wrong between us, `UpstreamError` for the upstream's own JSON-RPC error."""
        if self._is_closed:
            raise ToolError(
                ErrorCode.UPSTREAM_DOWN,
                f"the entry of upstream {self._config.name} has changed or gone; the call did not run",
                "List the tools again; if it is still there, call again.",
                facts={"upstream": self._config.name},
            )
        self._under_way += 1
        try:
            with ctx.while_elsewhere():
                return await self._call(spec, arguments, ctx)
        except UpstreamError as error:
            if self._visible is None:
                raise
            raise self._visible.of_error(error) from None
        finally:
            self._under_way -= 1

    async def _call(self, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        async with self._connection_for(ctx) as lifeline:
            return await self._call_over(lifeline, spec, arguments, ctx)

    async def _call_over(
        self, lifeline: ConnectionProvider, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext
    ) -> ToolResult:
        async def send(more: Mapping[str, Any]) -> dict[str, Any]:
            return await after_login(self._offer_login, ctx, lambda waiting: send_now(more, waiting))

        async def send_now(more: Mapping[str, Any], ctx: ToolContext) -> dict[str, Any]:
            lifeline.check()
            place = self.slots.one(ctx.wait_left_s())

            async def run(connection: LiveConnection) -> dict[str, Any]:
                if self._gate is not None:
                    # What was listed and asked for may have changed since, and a new process may offer something else.
                    await self._gate.settled(connection, ctx.wait_left_s())
                    self._gate.admit(spec)
                return await self._run(connection, lifeline, spec, arguments, more, ctx, place)

            # Given back between rounds, and while the upstream asks within one: a person may think for long.
            async with place:
                try:
                    return await with_retry(lifeline, run, ctx.wait_left_s)
                except LinkFault as failure:
                    from goat_mcp.upstreams.calls.connection_provider import error_message

                    raise error_message(self._config, failure.fault, is_call=True) from None

        raw = await in_rounds(self._config.name, send, ctx.client, allow=self._config.allow, roots=self._roots)
        relayed = relayed_result(self._config.name, raw)
        self.unknown_blocks += relayed.unknown_blocks
        if spec.output_schema is not None and not relayed.result.is_error:
            await self._output.check(spec.native_name, spec.output_schema, raw.get("structuredContent", MISSING))
        return relayed.result if self._visible is None else self._visible.of_call(relayed.result)

    async def _run(
        self,
        connection: LiveConnection,
        lifeline: ConnectionProvider,
        spec: UpstreamSpec,
        arguments: Mapping[str, Any],
        more: Mapping[str, Any],
        ctx: ToolContext,
        place: Permit,
    ) -> dict[str, Any]:
        config = self._config
        idle_s = config.idle_timeout_s or config.timeout_s
        clock = CallClock(config.timeout_s, idle_s)
        with connection.callers.one(ctx, clock, place), clock.scope:
            if not ctx.wants_progress and config.idle_timeout_s is None:
                return await connection.call_tool(
                    spec.native_name,
                    arguments,
                    meta=ctx.meta,
                    input_schema=spec.input_schema,
                    more=more,
                    client=ctx.client,
                )
            relay = ProgressRelay(ctx.progress, self._heartbeat_s)

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                clock.heard()
                await relay.report(progress, total, message)

            outcome: dict[str, Any] | Exception | None = None
            async with anyio.create_task_group() as group:
                if ctx.wants_progress:
                    group.start_soon(relay.beat)
                try:
                    outcome = await connection.call_tool(
                        spec.native_name,
                        arguments,
                        meta=ctx.meta,
                        input_schema=spec.input_schema,
                        more=more,
                        client=ctx.client,
                        on_progress=on_progress,
                    )
                except (UpstreamError, LinkFault) as failure:
                    # Kept for after the group: raised inside, it would arrive as an exception group.
                    outcome = failure
                finally:
                    relay.end()
                    group.cancel_scope.cancel()
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is not None:
                return outcome
        lifeline.doubt(connection)
        silent = config.idle_timeout_s is not None and clock.was_silent
        limit = f"was silent for {idle_s:g} s" if silent else f"did not answer within {config.timeout_s:g} s"
        raise ToolError(
            ErrorCode.TIMEOUT,
            f"upstream {config.name} {limit}; the call was cancelled but may have taken effect",
            "Check its outcome before calling again; the operator can raise timeout_s of this upstream.",
            facts={"upstream": config.name, "outcome": "unknown"},
        )


_CARRIES: dict[Any, tuple[tuple[str, type], ...]] = {
    "text": (("text", str),),
    "image": (("data", str), ("mimeType", str)),
    "audio": (("data", str), ("mimeType", str)),
    "resource": (("resource", dict),),
    "resource_link": (("uri", str), ("name", str)),
}
"""Members without which a block of that type is unreadable, and would cost the client the whole result."""
_NAMED_MEMBERS = frozenset({"content", "isError", "structuredContent", "_meta"})


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
