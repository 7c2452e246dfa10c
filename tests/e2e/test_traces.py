"""Traces of a real server: one trace from a client's request to what an upstream is sent, over each transport."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest
from mcp.client import Client

from tests.e2e.collector import Collector, collecting
from tests.e2e.conftest import UNASKED, ours, upstream_file
from tests.e2e.goat import Launch, connected, http_goat
from tests.free_port import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
META: Any = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
ENDS_WITHIN_S = 10.0


@pytest.fixture
def collector() -> Generator[Collector]:
    with collecting() as running:
        yield running


def traced(launch: Launch, endpoint: str) -> Launch:
    upstreams = upstream_file(launch.folder / "upstreams.json", plain=ours("plain"))
    return replace(launch, options=("--upstreams", str(upstreams), "--set", f"tracing.endpoint={endpoint}", *UNASKED))


async def call_echo(client: Client) -> None:
    result = await client.call_tool("mcp__plain__echo", {"text": "a"}, meta=META)
    assert not result.is_error, result


def check(collector: Collector) -> None:
    request, call, sent = collector.wait_for(
        "tools/call mcp__plain__echo", "call mcp__plain__echo", "MCP send tools/call echo"
    )
    assert {span.trace_id for span in (request, call, sent)} == {TRACE}
    assert [request.parent_id, call.parent_id, sent.parent_id] == [PARENT, request.span_id, call.span_id]
    assert call.attributes["goat_mcp.tool"] == "mcp__plain__echo"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_over_http_each_call_is_one_trace(launch: Launch, collector: Collector, mode: str) -> None:
    with http_goat(traced(launch, collector.url)) as goat:
        async with connected(goat, mode) as client:
            await call_echo(client)
            await call_echo(client)

        check(collector)


async def test_over_stdio_each_call_is_one_trace(launch: Launch, collector: Collector) -> None:
    async with connected(traced(launch, collector.url), "2026-07-28") as client:
        await call_echo(client)

    check(collector)


async def test_a_collector_that_is_not_there_costs_no_call_and_no_end(launch: Launch) -> None:
    with http_goat(traced(launch, f"http://127.0.0.1:{free_port()}")) as goat:
        async with connected(goat, "2026-07-28") as client:
            await call_echo(client)
        begun_s = time.monotonic()
        goat.process.terminate()

        assert goat.process.wait(60) == 0
        assert time.monotonic() - begun_s < ENDS_WITHIN_S
