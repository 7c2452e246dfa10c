"""How many requests an upstream is given at a time; a few more wait, the rest hear `busy` at once (ISO-2)."""

from __future__ import annotations

from types import TracebackType

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

    def one(self, max_wait_s: float) -> _OneSlot:
        """Hold a place meanwhile. Entering raises `ToolError(BUSY)`."""
        return _OneSlot(self, max_wait_s)

    async def take(self, max_wait_s: float) -> None:
        if self._free.value == 0:
            await self._queue(max_wait_s)
        else:
            self._free.acquire_nowait()
        self.in_flight += 1

    def give_back(self) -> None:
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


class _OneSlot:
    # Written out: a generator as a context costs three times as much, and every call has one of these.
    __slots__ = ("_max_wait_s", "_slots")

    def __init__(self, slots: Slots, max_wait_s: float) -> None:
        self._slots = slots
        self._max_wait_s = max_wait_s

    async def __aenter__(self) -> None:
        await self._slots.take(self._max_wait_s)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._slots.give_back()
