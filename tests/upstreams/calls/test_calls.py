"""Relayed calls against a double of the connection: repeats, progress, deadlines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from mcp.shared.dispatcher import ProgressFnT

from goat_mcp.core.calling_client import CallingClient, no_roots
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.result import ToolResult
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.calls.calls import UpstreamCalls
from goat_mcp.upstreams.calls.output_check import OutputCheck
from goat_mcp.upstreams.calls.resource_requests import ResourceRequests
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.faults import Fault, FaultKind, TransportFault
from goat_mcp.upstreams.listing.proxy_tool import upstream_tool
from goat_mcp.upstreams.transports.callers import Callers

pytestmark = pytest.mark.anyio

DONE: dict[str, Any] = {"content": [{"type": "text", "text": "done"}]}
Behaviour = Callable[[ProgressFnT | None], Awaitable[dict[str, Any]]]


@dataclass(eq=False)
class Double:
    """Connection and lifeline in one: each call takes the next behaviour, an exception or an answer."""

    behaviours: list[Exception | dict[str, Any] | Behaviour]
    events: list[str] = field(default_factory=list[str])
    closed: anyio.Event = field(default_factory=anyio.Event)
    tools_changed: anyio.Event = field(default_factory=anyio.Event)
    callers: Callers = field(default_factory=lambda: Callers("s", {}, allow=(), roots=no_roots))
    version: str = "2026-07-28"
    era_is_proved: bool = True
    announces_changes: bool = False

    def last_words(self) -> str:
        return ""

    def junk(self) -> tuple[int, int]:
        return 0, 0

    def stderr_text(self) -> str:
        return ""

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        input_schema: Mapping[str, Any],
        more: Mapping[str, Any] | None = None,
        client: CallingClient | None = None,
        on_progress: ProgressFnT | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        self.events.append(f"call {name}")
        behaviour = self.behaviours.pop(0)
        if isinstance(behaviour, Exception):
            raise behaviour
        if callable(behaviour):
            return await behaviour(on_progress)
        return behaviour

    def offers(self, capability: str) -> bool:
        return True

    async def list_tools(self) -> Any:
        raise AssertionError("calls do not list")

    async def list_all(self, method: str, member: str, listed: object) -> None:
        raise AssertionError("calls do not list")

    async def read_resource(self, uri: str, *, meta: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError("calls do not read")

    async def listen(self) -> None:
        raise AssertionError("calls do not listen")

    async def ping(self) -> None:
        raise AssertionError("calls do not ping")

    def check(self) -> None:
        pass

    async def ready(self, max_wait_s: float) -> Any:
        return self

    def begin_use(self) -> None:
        pass

    def end_use(self) -> None:
        pass

    def want(self) -> None:
        raise AssertionError("nothing is quarantined here")

    def drop(self, connection: object, *, is_failure: bool, why: str) -> None:
        self.events.append(f"drop {is_failure}")

    def forget_version(self) -> None:
        self.events.append("forget version")

    def worked(self) -> None:
        self.events.append("worked")

    def probe(self, connection: object) -> None:
        self.events.append("doubt")

    def refused(self, fault: Fault) -> None:
        self.events.append("refused")

    def request_failed(self, why: str) -> None:
        self.events.append("stumbled")


async def call(double: Double, *, heartbeat_s: float = 5.0, timeout_s: float = 5.0, **ctx: Any) -> ToolResult:
    config = UpstreamConfig(name="s", server="s", target=StdioLaunch("s"), timeout_s=timeout_s)
    output = OutputCheck("s", "warn", Telemetry("error"))

    @asynccontextmanager
    async def connection_for(ctx: ToolContext) -> AsyncGenerator[Double]:
        yield double

    def no_requests() -> ResourceRequests:
        raise AssertionError("only calls are made")

    calls = UpstreamCalls(config, connection_for, output, heartbeat_s=heartbeat_s, requests=no_requests)
    tool = upstream_tool(config, {"name": "t", "inputSchema": {"type": "object"}}, calls)
    return await tool.execute(tool.validate({}), ToolContext(call_id="t", **ctx))


def fault(kind: FaultKind, detail: str = "x") -> TransportFault:
    return TransportFault(Fault(kind, detail))


# ERA-2, LIF-6
@pytest.mark.parametrize(
    ("first", "events"),
    [
        (fault(FaultKind.UNREACHABLE), ["call t", "drop True", "call t", "worked"]),
        (fault(FaultKind.SESSION_LOST), ["call t", "drop False", "call t", "worked"]),
        (UpstreamError(-32022, "version"), ["call t", "forget version", "drop False", "call t", "worked"]),
    ],
)
async def test_a_call_that_provably_never_ran_is_tried_once_more(first: Exception, events: list[str]) -> None:
    double = Double([first, DONE])

    result = await call(double)

    assert result.text == "done"
    assert double.events == events


@pytest.mark.parametrize("kind", [FaultKind.UNREACHABLE, FaultKind.SESSION_LOST])
async def test_it_is_not_tried_a_third_time(kind: FaultKind) -> None:
    double = Double([fault(kind), fault(kind), DONE])

    with pytest.raises(ToolError) as caught:
        await call(double)

    assert caught.value.code is ErrorCode.UPSTREAM_DOWN
    assert "did not run" in caught.value.message
    assert double.events.count("call t") == 2


# LIF-6
@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (fault(FaultKind.LOST), ErrorCode.OUTCOME_UNKNOWN),
        (fault(FaultKind.HTTP_STATUS, "HTTP 502"), ErrorCode.OUTCOME_UNKNOWN),
        (fault(FaultKind.HTTP_STATUS, "HTTP 429"), ErrorCode.RATE),
        (fault(FaultKind.MALFORMED), ErrorCode.UPSTREAM),
        (fault(FaultKind.AUTH_REQUIRED), ErrorCode.AUTH),
    ],
)
async def test_a_call_that_may_have_run_is_never_repeated(failure: Exception, code: ErrorCode) -> None:
    double = Double([failure, DONE])

    with pytest.raises(ToolError) as caught:
        await call(double)

    assert caught.value.code is code
    assert double.events.count("call t") == 1


# FLW-1
async def test_silence_is_filled_with_signs_of_life_that_never_go_back() -> None:
    heard: list[tuple[float, float | None]] = []
    some, enough = anyio.Event(), anyio.Event()

    async def listen(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        heard.append((done, total))
        if len(heard) >= 4:
            some.set()
        if len(heard) >= 8:
            enough.set()

    async def slow(on_progress: ProgressFnT | None) -> dict[str, Any]:
        assert on_progress is not None
        await on_progress(1, 3, "one")
        await on_progress(1, 3, "one again")
        await some.wait()
        await on_progress(0.5, 3, "back")
        await on_progress(2, 3, "two")
        await enough.wait()
        return DONE

    with anyio.fail_after(60):
        await call(Double([slow]), heartbeat_s=0.02, progress=listen, wants_progress=True)

    values = [done for done, _ in heard]
    assert values == sorted(set(values))
    assert {total for _, total in heard} == {3}
    assert 1 in values and 2 in values and 0.5 not in values


# FLW-1
async def test_nothing_is_reported_after_the_result() -> None:
    heard: list[float] = []
    kept: list[ProgressFnT] = []

    async def listen(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        heard.append(done)

    async def quick(on_progress: ProgressFnT | None) -> dict[str, Any]:
        assert on_progress is not None
        kept.append(on_progress)
        return DONE

    await call(Double([quick]), progress=listen, wants_progress=True)
    await kept[0](1, None, None)

    assert heard == []


async def test_a_failure_with_progress_is_the_same_failure() -> None:
    with pytest.raises(UpstreamError, match="no"):
        await call(Double([UpstreamError(-32602, "no")]), wants_progress=True)
    with pytest.raises(ToolError, match="lost during the call"):
        await call(Double([fault(FaultKind.LOST)]), wants_progress=True)


async def test_a_timeout_counts_although_the_client_is_told_of_progress() -> None:
    async def endless(on_progress: ProgressFnT | None) -> dict[str, Any]:
        await anyio.sleep(60)
        return DONE

    with pytest.raises(ToolError) as caught:
        await call(Double([endless]), timeout_s=0.05, wants_progress=True)

    assert caught.value.code is ErrorCode.TIMEOUT
