"""Progress messages for a call that waits for something that reports none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import anyio

from goat_mcp.core.context import Progress, ToolContext

HEARTBEAT_S = 4.0
"""Hosts are promised one every 5 s (contract: tools.md, "Time")."""

T = TypeVar("T")


class _Heard:
    """A call's progress, and when it was last reported."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.at_s = time.monotonic()

    async def __call__(
        self,
        done: float,
        total: float | None = None,
        message: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.at_s = time.monotonic()
        await self._progress(done, total, message, meta=meta)


async def with_heartbeat(work: Callable[[], Awaitable[T]], ctx: ToolContext, message: str) -> T:
    """The outcome of `work`; meanwhile a client that asked for progress gets the seconds and `message`."""
    return await filling_silence(lambda _: work(), ctx, message)


async def filling_silence(work: Callable[[ToolContext], Awaitable[T]], ctx: ToolContext, message: str) -> T:
    """As `with_heartbeat`, for work that may report progress itself, to the context it gets: while it does, its
    own reports are enough."""
    if not ctx.wants_progress:
        return await work(ctx)
    heard = _Heard(ctx.progress)
    started_s = heard.at_s
    beats: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    # A quick call costs no task.
    first = loop.call_later(HEARTBEAT_S, lambda: beats.append(loop.create_task(_fill(heard, started_s, message))))
    try:
        return await work(ctx.changed(progress=heard))
    finally:
        first.cancel()
        if beats:
            beats[0].cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait(beats)


async def _fill(heard: _Heard, started_s: float, message: str) -> None:
    while True:
        left_s = heard.at_s + HEARTBEAT_S - time.monotonic()
        if left_s > 0:
            await anyio.sleep(left_s)
        else:
            await heard(time.monotonic() - started_s, None, message)


async def beat(progress: Progress, message: str) -> None:
    """Report the seconds and `message` every few seconds, until cancelled."""
    started_s = time.monotonic()
    while True:
        await anyio.sleep(HEARTBEAT_S)
        await progress(time.monotonic() - started_s, None, message)
