"""A sign of life while a call waits for something that tells nothing of its progress."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from goat_mcp.core.context import Progress, ToolContext

HEARTBEAT_S = 4.0
"""Hosts are promised one every 5 s (contract: tools.md, "Time")."""

T = TypeVar("T")


async def with_heartbeat(work: Callable[[], Awaitable[T]], ctx: ToolContext, message: str) -> T:
    """The outcome of `work`; meanwhile a client that asked for progress gets the seconds and `message`."""
    if not ctx.wants_progress:
        return await work()
    outcome: list[T] = []
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(beat, ctx.progress, message)
        try:
            outcome.append(await work())
        except Exception as raised:
            # Kept for after the group: raised inside, it would arrive as an exception group.
            failure = raised
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return outcome[0]


async def beat(progress: Progress, message: str) -> None:
    """Tell the seconds and `message` every now and then, until cancelled."""
    started_s = time.monotonic()
    while True:
        await anyio.sleep(HEARTBEAT_S)
        await progress(time.monotonic() - started_s, None, message)
