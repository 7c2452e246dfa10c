"""How many things run at a time, and whose turn is next. What runs, and what is said if there is no turn, is up to
whoever asks.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

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
        running = self._running
        for end in range(1, len(owner) + 1):
            part = owner[:end]
            if running[part] > 1:
                running[part] -= 1
            else:
                del running[part]
        while self._waiting and (turn := self._next()) is not None:
            self._waiting.remove(turn)
            self.enter(turn.owner)
            turn.granted.set_result(None)
        for end in range(1, len(owner) + 1):
            part = owner[:end]
            if part not in running and not (self._waiting and self.waiting(part)):
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
        if self._in_use >= self._in_all:
            return None
        ready = (turn for turn in self._waiting if not turn.granted.done() and self.has_room(turn.owner))
        return min(ready, key=self._rank, default=None)

    def _rank(self, turn: _Turn) -> list[int]:
        parts = [turn.owner[:end] for end in range(1, len(turn.owner) + 1)]
        ranks = [rank for part in parts for rank in (self._running.get(part, 0), self._served.get(part, 0))]
        return [not turn.goes_first, *ranks]
