"""How many requests an upstream is given at a time; a few more wait, the rest is answered `busy` at once (ISO-2).

A request whose client the upstream has asked something is not worked on: others have its permit until the answer is
there, so that a client that never answers keeps nobody from the upstream.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import TracebackType

import anyio
import anyio.lowlevel

from goat_mcp.core.errors import ErrorCode, ToolError

Owner = tuple[str, ...]
"""Who a permit is for, the whole before its part, as ("principal", "session"). Empty if all are alike."""


@dataclass(eq=False)
class _Turn:
    """One that waits. `granted` is set once it has its permit."""

    owner: Owner
    goes_first: bool
    granted: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class ConcurrencyLimiter:
    """`in_all` permits, at most `per_owner` of them to owners with the same first part.

    A free permit is for the owner who has the fewest, among equals for the one who was served longest ago, and then for
    whoever came first. Among the parts of one owner it is the same. So nobody waits long because others ask for much.
    """

    def __init__(self, in_all: int, per_owner: int | None = None) -> None:
        self._in_all = in_all
        self._per_owner = in_all if per_owner is None else per_owner
        self._in_use = 0
        # Both by owner and by the whole that it is a part of.
        self._running: dict[Owner, int] = {}
        self._served: dict[Owner, int] = {}
        self._turns = 0
        self._waiting: list[_Turn] = []

    def running(self, owner: Owner = ()) -> int:
        """How many permits this owner has, its parts included; all of them for the empty one."""
        return self._running.get(owner, 0) if owner else self._in_use

    def waiting(self, owner: Owner = ()) -> int:
        """How many of this owner wait. One that was cancelled does not, though its task may not have ended yet."""
        return sum(turn.owner[: len(owner)] == owner and not turn.granted.done() for turn in self._waiting)

    def has_room(self, owner: Owner = ()) -> bool:
        """Whether a permit is free for this owner. Then nobody waits who could have it."""
        return self._in_use < self._in_all and (not owner or self._running.get(owner[:1], 0) < self._per_owner)

    def enter(self, owner: Owner = ()) -> None:
        """Take a permit, even if it is one more than there should be."""
        self._in_use += 1
        self._turns += 1
        for end in range(1, len(owner) + 1):
            part = owner[:end]
            self._running[part] = self._running.get(part, 0) + 1
            self._served[part] = self._turns

    def leave(self, owner: Owner = ()) -> None:
        """Give a permit back. It belongs to the next one before that wakes, so that nobody comes in between."""
        self._in_use -= 1
        for end in range(1, len(owner) + 1):
            part = owner[:end]
            self._running[part] -= 1
            if not self._running[part]:
                del self._running[part]
        while (turn := self._next()) is not None:
            self._waiting.remove(turn)
            self.enter(turn.owner)
            turn.granted.set_result(None)
        for end in range(1, len(owner) + 1):
            part = owner[:end]
            if part not in self._running and not self.waiting(part):
                # Whoever neither runs nor waits is owed nothing.
                self._served.pop(part, None)

    async def take(self, owner: Owner, max_wait_s: float | None, *, goes_first: bool = False) -> bool:
        """Take a permit, in turn; False if there was no turn in time. `goes_first`: before all that do not say so."""
        if self.has_room(owner):
            self.enter(owner)
            return True
        # One that was cancelled before it began does not queue.
        await anyio.lowlevel.checkpoint_if_cancelled()
        turn = _Turn(owner, goes_first)
        self._waiting.append(turn)
        try:
            with anyio.move_on_after(max_wait_s):
                await turn.granted
        except BaseException:
            if turn.granted.done() and not turn.granted.cancelled():
                # The permit came in the same moment.
                self.leave(owner)
            raise
        finally:
            if turn in self._waiting:
                self._waiting.remove(turn)
        return turn.granted.done() and not turn.granted.cancelled()

    def _next(self) -> _Turn | None:
        if self._in_use >= self._in_all or not self._waiting:
            return None
        ready = (turn for turn in self._waiting if not turn.granted.done() and self.has_room(turn.owner))
        return min(ready, key=self._rank, default=None)

    def _rank(self, turn: _Turn) -> list[int]:
        parts = [turn.owner[:end] for end in range(1, len(turn.owner) + 1)]
        ranks = [rank for part in parts for rank in (self._running.get(part, 0), self._served.get(part, 0))]
        return [not turn.goes_first, *ranks]


MAX_QUEUED = 64


class UpstreamLimiter:
    """`cap` permits. `in_flight` counts the requests that have one, or have lent it while they ask."""

    def __init__(self, upstream: str, cap: int, what: str = "calls") -> None:
        self._upstream = upstream
        self._cap = cap
        self._what = what
        self.limiter = ConcurrencyLimiter(cap)
        self.in_flight = 0

    def permit(self, max_wait_s: float, principal: str = "") -> Permit:
        """Hold a permit until the block ends. Entering raises `ToolError(BUSY)`. Principals have their turns alike."""
        return Permit(self, max_wait_s, (principal,))

    async def take(self, owner: Owner, max_wait_s: float) -> None:
        if not self.limiter.has_room(owner) and (waiting := self.limiter.waiting()) >= MAX_QUEUED:
            raise ToolError(
                ErrorCode.BUSY,
                f"upstream {self._upstream} runs {self._cap} {self._what} and {waiting} more are waiting",
                "Call again when some have finished.",
            )
        if not await self.limiter.take(owner, max_wait_s):
            raise ToolError(
                ErrorCode.BUSY,
                f"upstream {self._upstream} was busy with {self._cap} {self._what} for too long",
                "Call again later.",
            )


class Permit:
    """One request's, from entering to leaving."""

    # Written out: a generator as a context costs three times as much, and every call has one of these.
    __slots__ = ("_has_it", "_is_over", "_max_wait_s", "_of", "_owner", "_questions")

    def __init__(self, of: UpstreamLimiter, max_wait_s: float, owner: Owner) -> None:
        self._of = of
        self._max_wait_s = max_wait_s
        self._owner = owner
        self._questions = 0
        self._has_it = False
        self._is_over = False

    async def __aenter__(self) -> Permit:
        await self._of.take(self._owner, self._max_wait_s)
        self._has_it = True
        self._of.in_flight += 1
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._of.in_flight -= 1
        self._is_over = True
        self._return()

    def lent(self) -> LentPermit:
        """Until this and other blocks of the same permit end, others may have it. Leaving waits for it."""
        return LentPermit(self)

    def lend(self) -> None:
        self._questions += 1
        self._return()

    async def take_back(self) -> None:
        """Before all that have not begun. If that is given up, the request goes on all the same: it is one more."""
        if not self._was_last_answer():
            return
        limiter = self._of.limiter
        try:
            await limiter.take(self._owner, None, goes_first=True)
        except BaseException:
            limiter.enter(self._owner)
            raise
        finally:
            self._taken_back()

    def take_back_at_once(self) -> None:
        """Its task is being cancelled: it cannot wait."""
        if self._was_last_answer():
            self._of.limiter.enter(self._owner)
            self._taken_back()

    def _was_last_answer(self) -> bool:
        self._questions -= 1
        return not (self._questions or self._is_over or self._has_it)

    def _taken_back(self) -> None:
        if self._questions or self._is_over or self._has_it:
            # It has ended or asked again meanwhile.
            self._of.limiter.leave(self._owner)
        else:
            self._has_it = True

    def _return(self) -> None:
        if self._has_it:
            self._has_it = False
            self._of.limiter.leave(self._owner)


class LentPermit:
    """One question's time."""

    __slots__ = ("_permit",)

    def __init__(self, permit: Permit) -> None:
        self._permit = permit

    async def __aenter__(self) -> None:
        self._permit.lend()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        if exc_val is None or isinstance(exc_val, Exception):
            await self._permit.take_back()
        else:
            self._permit.take_back_at_once()
