"""A bad upstream beside a good one, and calls that end before their answer: what reaches anybody else is nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from goat_mcp.core.errors import ToolError
from goat_mcp.upstreams.listing.paging import MAX_LIST_BYTES
from goat_mcp.upstreams.status import UpstreamState
from tests.upstreams.fleet import QUICK, Fleet, fleet, server, warm

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

PING = [{"name": "ping", "inputSchema": {"type": "object"}}]


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


async def keep_calling(running: Fleet, name: str) -> None:
    """Until cancelled, as a client that does not give up."""
    while True:
        try:
            await running.call(name)
        except ToolError:
            await anyio.sleep(0.01)


# ISO-1
async def test_no_call_of_a_healthy_upstream_fails_beside_a_hang_a_drip_and_crash_loops(tmp_path: Path) -> None:
    entries = {
        "healthy": server("raw.py", "plain"),
        "hang": server("raw.py", "hang", timeout_s=0.5),
        "drip": server("raw.py", "unruly", timeout_s=0.5),
        "crash": server("raw.py", "exit"),
        "leave": server("raw.py", "plain"),
        "flood": server("raw.py", "flood"),
    }
    warm(tmp_path, entries, {"hang": PING, "crash": PING})
    limits = replace(QUICK, start_timeout_s=0.5)
    answers: list[str] = []
    async with fleet(tmp_path, entries, limits=limits) as running:
        async with anyio.create_task_group() as group:
            for name in ("hang__ping", "drip__drip", "crash__ping", "leave__leave", "flood__ping"):
                for _ in range(3):
                    group.start_soon(keep_calling, running, f"mcp__{name}")
            with anyio.fail_after(60):
                while len(answers) < 300:
                    answers.append((await running.call("mcp__healthy__ping")).text)
            group.cancel_scope.cancel()
        status = running.status("healthy")

    assert answers == ["pong"] * 300
    assert (status.state, status.reason_code, status.junk_lines) == (UpstreamState.READY, "", 0)


# FLW-2
async def test_a_late_answer_to_a_cancelled_call_is_dropped_and_the_process_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"raw": server("raw.py", "plain", log)}) as running:
        with anyio.CancelScope() as cancelled:
            async with anyio.create_task_group() as group:
                group.start_soon(running.call, "mcp__raw__slow", {"s": 2})
                await running.until(lambda: "slow" in lines(log))
                cancelled.cancel()
        # The server works on one call at a time: its late answer comes before this one.
        after = await running.call("mcp__raw__ping")
        status = running.status("raw")

    assert cancelled.cancelled_caught
    assert after.text == "pong"
    assert [line for line in lines(log) if line not in ("list",)][1:] == ["slow", "cancelled", "ping"]
    assert (status.state, status.junk_lines, status.calls_in_flight) == (UpstreamState.READY, 0, 0)


# FLW-2
async def test_an_upstream_hears_at_once_of_many_calls_cancelled_together(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"good": server("good.py", log, concurrency=10)}) as running:
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(running.call, "mcp__good__hang")
            await running.until(lambda: lines(log).count("hang") == 10)
            group.cancel_scope.cancel()
        in_flight = running.status("good").calls_in_flight
        # Each would take an hour: whoever ends now was told to.
        await running.until(lambda: lines(log).count("cancelled") == 10)

    assert in_flight == 0


async def test_only_the_first_answer_to_a_pending_call_counts(tmp_path: Path) -> None:
    names = ("twice", "ping", "twice", "string_id", "ping")
    async with fleet(tmp_path, {"raw": server("raw.py", "unruly")}) as running:
        texts = [(await running.call(f"mcp__raw__{name}")).text for name in names]

    assert texts == ["first", "pong", "first", "same id", "pong"]


# AGG-4
async def test_a_list_that_grows_without_end_is_cut_at_a_size_and_says_so(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"heavy": server("raw.py", "heavy")}) as running:
        names = running.registry.names()
        status = running.status("heavy")

    # Three megabytes a page: the sixth would go over.
    assert names == tuple(f"mcp__heavy__tool_{page}" for page in range(5))
    assert (status.reason_code, status.detail) == ("list_truncated", f"more than {MAX_LIST_BYTES} bytes")
