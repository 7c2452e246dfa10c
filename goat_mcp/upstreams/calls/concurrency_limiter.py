"""How many requests an upstream is given at a time; a few more wait, the rest hear `busy` at once (ISO-2).

A request whose client the upstream has asked something is not worked on: others have its place until the answer is
there, so that a client that never answers keeps nobody from the upstream.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

import anyio
import anyio.lowlevel

from goat_mcp.core.errors import ErrorCode, ToolError

MAX_QUEUED = 64


class UpstreamLimiter:
    """`cap` places. `in_flight` counts the requests that have one, or have given it away while they ask."""

    def __init__(self, upstream: str, cap: int, what: str = "calls") -> None:
        self._upstream = upstream
        self._cap = cap
        self._what = what
        self._taken = 0
        self._coming_back: deque[asyncio.Future[None]] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.in_flight = 0

    def one(self, max_wait_s: float) -> Permit:
        """Hold a place meanwhile. Entering raises `ToolError(BUSY)`."""
        return Permit(self, max_wait_s)

    async def take(self, max_wait_s: float) -> None:
        # Nobody waits where there is room.
        if self._taken < self._cap:
            self._taken += 1
            return
        # One that was cancelled before it began does not queue; one that waits is there until its task has a turn.
        await anyio.lowlevel.checkpoint_if_cancelled()
        waiting = sum(not turn.done() for turn in self._waiting)
        if waiting >= MAX_QUEUED:
            raise ToolError(
                ErrorCode.BUSY,
                f"upstream {self._upstream} runs {self._cap} {self._what} and {waiting} more are waiting",
                "Call again when some have finished.",
            )
        with anyio.move_on_after(max_wait_s):
            await self._turn(self._waiting)
            return
        raise ToolError(
            ErrorCode.BUSY,
            f"upstream {self._upstream} was busy with {self._cap} {self._what} for too long",
            "Call again later.",
        )

    async def take_again(self) -> None:
        """Before all that have not begun. Where that is given up, the request goes on all the same: it is one more."""
        if self._taken < self._cap:
            self._taken += 1
            return
        try:
            await self._turn(self._coming_back)
        except BaseException:
            self._taken += 1
            raise

    def take_anyway(self) -> None:
        self._taken += 1

    def free(self) -> None:
        self._taken -= 1
        for queue in (self._coming_back, self._waiting):
            while queue and self._taken < self._cap:
                turn = queue.popleft()
                if not turn.done():
                    # The place is theirs before they wake: nobody comes in between.
                    self._taken += 1
                    turn.set_result(None)

    async def _turn(self, queue: deque[asyncio.Future[None]]) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except BaseException:
            if turn.cancelled():
                if turn in queue:
                    queue.remove(turn)
            else:
                # The place came in the same moment.
                self.free()
            raise


class Permit:
    """One request's, from entering to leaving."""

    # Written out: a generator as a context costs three times as much, and every call has one of these.
    __slots__ = ("_has_it", "_is_over", "_max_wait_s", "_questions", "_slots")

    def __init__(self, slots: UpstreamLimiter, max_wait_s: float) -> None:
        self._slots = slots
        self._max_wait_s = max_wait_s
        self._questions = 0
        self._has_it = False
        self._is_over = False

    async def __aenter__(self) -> Permit:
        await self._slots.take(self._max_wait_s)
        self._has_it = True
        self._slots.in_flight += 1
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._slots.in_flight -= 1
        self._is_over = True
        self._give_back()

    def given_away(self) -> GivenAway:
        """Until the block ends, and the other blocks of the same place, it is free for others. Leaving waits for it."""
        return GivenAway(self)

    def ask(self) -> None:
        self._questions += 1
        self._give_back()

    async def come_back(self) -> None:
        if not self._was_last_answer():
            return
        try:
            await self._slots.take_again()
        finally:
            self._have_it()

    def come_back_at_once(self) -> None:
        """Its task is being cancelled: it cannot wait."""
        if self._was_last_answer():
            self._slots.take_anyway()
            self._have_it()

    def _was_last_answer(self) -> bool:
        self._questions -= 1
        return not (self._questions or self._is_over or self._has_it)

    def _have_it(self) -> None:
        if self._questions or self._is_over or self._has_it:
            # It has ended or asked again meanwhile.
            self._slots.free()
        else:
            self._has_it = True

    def _give_back(self) -> None:
        if self._has_it:
            self._has_it = False
            self._slots.free()


class GivenAway:
    """One question's time."""

    __slots__ = ("_place",)

    def __init__(self, place: Permit) -> None:
        self._place = place

    async def __aenter__(self) -> None:
        self._place.ask()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        if exc_val is None or isinstance(exc_val, Exception):
            await self._place.come_back()
        else:
            self._place.come_back_at_once()
