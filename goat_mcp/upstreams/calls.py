"""Calls into one upstream: slots, deadlines, at most one repeat and only of what provably never ran.

Contract: FLW-1 to FLW-3, LIF-5, LIF-6, LIF-9, ISO-2. Keeping the connection alive is the supervisor's business.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.result import ToolResult
from goat_mcp.upstreams.entry import UpstreamConfig
from goat_mcp.upstreams.faults import Fault, FaultKind, LinkFault
from goat_mcp.upstreams.live_connection import LiveConnection
from goat_mcp.upstreams.output_check import MISSING, OutputCheck
from goat_mcp.upstreams.progress import HEARTBEAT_S, ProgressRelay
from goat_mcp.upstreams.proxy_tool import UpstreamSpec
from goat_mcp.upstreams.relay import relayed_result

MAX_QUEUED = 64
_UNSUPPORTED_VERSION = -32022


class Lifeline(Protocol):
    """The supervisor as calls see it."""

    def check(self) -> None:
        """Raises `ToolError(UPSTREAM_DOWN)` at once while the upstream is known to be down."""
        ...

    async def ready(self, max_wait_s: float) -> LiveConnection:
        """A connection, started if need be. Raises `ToolError(UPSTREAM_DOWN)`."""
        ...

    def drop(self, connection: LiveConnection, *, is_failure: bool, why: str) -> None:
        """The connection is of no more use; get another."""
        ...

    def forget_version(self) -> None:
        """The protocol revision on record is wrong."""
        ...

    def worked(self) -> None:
        """A call was answered."""
        ...

    def stumbled(self, why: str) -> None:
        """A transport failure that leaves the connection usable."""
        ...


class UpstreamCalls:
    """Relays the calls of one upstream's tools."""

    def __init__(
        self, config: UpstreamConfig, lifeline: Lifeline, output: OutputCheck, *, heartbeat_s: float = HEARTBEAT_S
    ) -> None:
        self._config = config
        self._lifeline = lifeline
        self._output = output
        self._heartbeat_s = heartbeat_s
        self._free = anyio.Semaphore(config.concurrency, fast_acquire=True)
        self._queued = 0
        self.in_flight = 0
        self.unknown_blocks = 0

    async def call(self, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Raises `ToolError` for what is wrong between us, `UpstreamError` for the upstream's own JSON-RPC error."""
        self._lifeline.check()
        async with self._slot(ctx):
            raw = await self._run_once_or_repeat(spec, arguments, ctx)
        relayed = relayed_result(self._config.name, raw)
        self.unknown_blocks += relayed.unknown_blocks
        if spec.output_schema is not None and not relayed.result.is_error:
            await self._output.check(spec.native_name, spec.output_schema, raw.get("structuredContent", MISSING))
        return relayed.result

    @asynccontextmanager
    async def _slot(self, ctx: ToolContext) -> AsyncGenerator[None]:
        if self._free.value == 0:
            await self._queue(ctx)
        else:
            self._free.acquire_nowait()
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1
            self._free.release()

    async def _queue(self, ctx: ToolContext) -> None:
        name, cap = self._config.name, self._config.concurrency
        if self._queued >= MAX_QUEUED:
            raise ToolError(
                ErrorCode.BUSY,
                f"upstream {name} runs {cap} calls and {self._queued} more are waiting",
                "Call again when some have finished.",
            )
        self._queued += 1
        got_slot = False
        try:
            with anyio.move_on_after(ctx.wait_left_s()):
                await self._free.acquire()
                got_slot = True
        finally:
            self._queued -= 1
        if not got_slot:
            raise ToolError(
                ErrorCode.BUSY, f"upstream {name} was busy with {cap} calls for too long", "Call again later."
            )

    async def _run_once_or_repeat(
        self, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext
    ) -> dict[str, Any]:
        may_repeat = True
        while True:
            connection = await self._lifeline.ready(ctx.wait_left_s())
            try:
                raw = await self._run(connection, spec, arguments, ctx)
            except UpstreamError as refused:
                if refused.code != _UNSUPPORTED_VERSION or not may_repeat:
                    self._lifeline.worked()
                    raise
                self._lifeline.forget_version()
                self._lifeline.drop(connection, is_failure=False, why="it no longer speaks the revision on record")
            except LinkFault as failure:
                if not self._may_run_again(connection, failure.fault) or not may_repeat:
                    raise self._described(failure.fault) from None
            else:
                self._lifeline.worked()
                return raw
            may_repeat = False

    def _may_run_again(self, connection: LiveConnection, fault: Fault) -> bool:
        """Tell the supervisor, and say whether the call provably never ran (LIF-6)."""
        if fault.kind is FaultKind.SESSION_LOST:
            self._lifeline.drop(connection, is_failure=False, why=fault.detail)
            return True
        if fault.kind is FaultKind.UNREACHABLE:
            self._lifeline.drop(connection, is_failure=True, why=fault.detail)
            return True
        if fault.kind is FaultKind.LOST or (fault.kind is FaultKind.HTTP_STATUS and "429" not in fault.detail):
            self._lifeline.stumbled(fault.detail)
        return False

    async def _run(
        self, connection: LiveConnection, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext
    ) -> dict[str, Any]:
        config = self._config
        hard_deadline_s = anyio.current_time() + config.timeout_s
        idle_s = config.idle_timeout_s or config.timeout_s
        with anyio.move_on_after(min(config.timeout_s, idle_s)) as scope:
            if not ctx.wants_progress and config.idle_timeout_s is None:
                return await connection.call_tool(
                    spec.native_name, arguments, meta=ctx.meta, input_schema=spec.input_schema
                )
            relay = ProgressRelay(ctx.progress, self._heartbeat_s)

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                scope.deadline = min(hard_deadline_s, anyio.current_time() + idle_s)
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
        silent = config.idle_timeout_s is not None and anyio.current_time() < hard_deadline_s
        limit = f"was silent for {idle_s:g} s" if silent else f"did not answer within {config.timeout_s:g} s"
        raise ToolError(
            ErrorCode.TIMEOUT,
            f"upstream {config.name} {limit}; the call was cancelled but may have taken effect",
            "Check its outcome before calling again; the operator can raise timeout_s of this upstream.",
            facts={"upstream": config.name, "outcome": "unknown"},
        )

    def _described(self, fault: Fault) -> ToolError:
        name = self._config.name
        facts = {"upstream": name, "reason": str(fault.kind)}
        if fault.kind is FaultKind.AUTH_REQUIRED:
            return ToolError(
                ErrorCode.UPSTREAM_DOWN,
                f"upstream {name} refused our credentials ({fault.detail}); the call did not run",
                "The operator must put valid credentials into the headers of this upstream.",
                facts=facts,
            )
        if fault.kind is FaultKind.UNREACHABLE or fault.kind is FaultKind.SESSION_LOST:
            return ToolError(
                ErrorCode.UPSTREAM_DOWN,
                f"upstream {name} cannot be reached ({fault.detail}); the call did not run",
                "Call again later.",
                facts=facts,
            )
        if fault.kind is FaultKind.MALFORMED:
            return ToolError(
                ErrorCode.UPSTREAM,
                f"upstream {name} ran the call, but {fault.detail}",
                "Ask it for less, or check the outcome another way.",
                facts=facts,
            )
        if fault.detail == "HTTP 429":
            return ToolError(
                ErrorCode.RATE, f"upstream {name} limits our rate (HTTP 429)", "Call again later.", facts=facts
            )
        return ToolError(
            ErrorCode.OUTCOME_UNKNOWN,
            f"upstream {name} was lost during the call ({fault.detail}); the call may have taken effect",
            "Check its outcome before calling again.",
            facts={**facts, "outcome": "unknown"},
        )
