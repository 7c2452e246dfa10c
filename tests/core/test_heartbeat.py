"""What a waiting call says, and that it changes nothing about the call's end."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from goat_mcp.core import heartbeat
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.heartbeat import filling_silence, with_heartbeat

pytestmark = pytest.mark.anyio


async def test_it_speaks_with_rising_values_until_the_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.01)
    heard: list[tuple[float, str | None]] = []
    enough = anyio.Event()

    async def note(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        heard.append((done, message))
        if len(heard) == 3:
            enough.set()

    async def work() -> str:
        with anyio.fail_after(60):
            await enough.wait()
        return "done"

    outcome = await with_heartbeat(work, ToolContext(call_id="t", wants_progress=True, progress=note), "waiting")
    after = len(heard)
    await anyio.sleep(0.05)

    assert outcome == "done"
    assert heard[:3] == [(done, "waiting") for done, _ in sorted(heard[:3])]
    assert len(heard) == after


@pytest.mark.parametrize("wants_progress", [True, False])
async def test_a_failure_arrives_as_it_was_raised(wants_progress: bool) -> None:
    async def work() -> None:
        raise ToolError(ErrorCode.NOT_FOUND, "nothing there")

    with pytest.raises(ToolError, match="nothing there"):
        await with_heartbeat(work, ToolContext(call_id="t", wants_progress=wants_progress), "waiting")


async def test_a_cancelled_call_ends_its_work() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await anyio.sleep(60)
        finally:
            ended.append("work")

    with anyio.move_on_after(0.05) as scope:
        await with_heartbeat(work, ToolContext(call_id="t", wants_progress=True), "waiting")

    assert scope.cancelled_caught
    assert ended == ["work"]


async def test_a_quick_call_costs_no_task() -> None:
    async def work() -> int:
        return len(asyncio.all_tasks())

    before = len(asyncio.all_tasks())

    assert await with_heartbeat(work, ToolContext(call_id="t", wants_progress=True), "waiting") == before


async def test_work_that_tells_of_itself_is_not_talked_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.01)
    heard: list[str | None] = []
    silence = anyio.Event()

    async def note(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        heard.append(message)
        if message == "waiting":
            silence.set()

    async def work(ctx: ToolContext) -> None:
        for _ in range(100):
            await ctx.progress(1, None, "its own")
        with anyio.fail_after(60):
            await silence.wait()

    await filling_silence(work, ToolContext(call_id="t", wants_progress=True, progress=note), "waiting")

    assert heard[:101] == ["its own"] * 100 + ["waiting"]
