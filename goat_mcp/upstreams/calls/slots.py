"""How many requests an upstream is given at a time; a few more wait, the rest hear `busy` at once (ISO-2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError

MAX_QUEUED = 64


class Slots:
    """`cap` places. `in_flight` counts who has one."""

    def __init__(self, upstream: str, cap: int, what: str = "calls") -> None:
        self._upstream = upstream
        self._cap = cap
        self._what = what
        self._free = anyio.Semaphore(cap, fast_acquire=True)
        self._queued = 0
        self.in_flight = 0

    @asynccontextmanager
    async def one(self, max_wait_s: float) -> AsyncGenerator[None]:
        """Hold a place. Raises `ToolError(BUSY)`."""
        if self._free.value == 0:
            await self._queue(max_wait_s)
        else:
            self._free.acquire_nowait()
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1
            self._free.release()

    async def _queue(self, max_wait_s: float) -> None:
        if self._queued >= MAX_QUEUED:
            raise ToolError(
                ErrorCode.BUSY,
                f"upstream {self._upstream} runs {self._cap} {self._what} and {self._queued} more are waiting",
                "Call again when some have finished.",
            )
        self._queued += 1
        got_slot = False
        try:
            with anyio.move_on_after(max_wait_s):
                await self._free.acquire()
                got_slot = True
        finally:
            self._queued -= 1
        if not got_slot:
            raise ToolError(
                ErrorCode.BUSY,
                f"upstream {self._upstream} was busy with {self._cap} {self._what} for too long",
                "Call again later.",
            )
