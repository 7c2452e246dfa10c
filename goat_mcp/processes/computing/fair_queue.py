"""How many computations run at a time, and whose is next: nobody waits long because somebody else asks for much."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError

IN_ALL = 4
"""Each may take a core and half a gigabyte."""
PER_PRINCIPAL = 3
"""The last place is for the next principal."""
QUEUE_S = 10.0
"""How long a call waits for its turn before it is told that there is none."""


@dataclass(eq=False)
class _Turn:
    principal: str
    session: str
    came: anyio.Event = field(default_factory=anyio.Event)

    @property
    def owners(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (self.principal,), (self.principal, self.session)


class FairQueue:
    """A free place is for the principal who has the fewest, among equals for the one who was served longest ago; among
    sessions of one principal it is the same."""

    def __init__(self, in_all: int = IN_ALL, per_principal: int = PER_PRINCIPAL, *, queue_s: float = QUEUE_S) -> None:
        self._in_all = in_all
        self._per_principal = per_principal
        self._queue_s = queue_s
        self._running: Counter[tuple[str, ...]] = Counter()
        """By principal, and by principal and session."""
        self._in_use = 0
        self._waiting: list[_Turn] = []
        self._served: dict[tuple[str, ...], int] = {}
        self._turns = 0

    @asynccontextmanager
    async def of(self, ctx: ToolContext, what: str) -> AsyncGenerator[None]:
        """Hold a place. `what` is to be done, in words. Raises `ToolError(BUSY)`."""
        turn = _Turn(ctx.principal, ctx.session_key)
        wait_s = min(self._queue_s, ctx.wait_left_s())
        self._waiting.append(turn)
        self._give_out()
        try:
            with anyio.move_on_after(wait_s):
                await turn.came.wait()
            if not turn.came.is_set():
                raise self._busy(turn, what, wait_s)
            yield
        finally:
            if turn.came.is_set():
                self._leave(turn)
            else:
                self._waiting.remove(turn)

    def _give_out(self) -> None:
        while (turn := self._next()) is not None:
            self._waiting.remove(turn)
            self._in_use += 1
            self._turns += 1
            for owner in turn.owners:
                self._running[owner] += 1
                self._served[owner] = self._turns
            # The place is theirs before they wake: nobody comes in between.
            turn.came.set()

    def _next(self) -> _Turn | None:
        if self._in_use >= self._in_all:
            return None
        may_run = [turn for turn in self._waiting if self._running[turn.owners[0]] < self._per_principal]
        return min(may_run, key=self._rank, default=None)

    def _rank(self, turn: _Turn) -> list[int]:
        return [rank for owner in turn.owners for rank in (self._running[owner], self._served.get(owner, 0))]

    def _leave(self, turn: _Turn) -> None:
        self._in_use -= 1
        for owner in turn.owners:
            self._running[owner] -= 1
        self._give_out()
        self._forget()

    def _forget(self) -> None:
        """Whoever neither runs nor waits is not owed anything."""
        known = {owner for turn in self._waiting for owner in turn.owners} | (+self._running).keys()
        self._running = +self._running
        self._served = {owner: turn for owner, turn in self._served.items() if owner in known}

    def _busy(self, turn: _Turn, what: str, waited_s: float) -> ToolError:
        own = self._running[turn.owners[0]]
        running = f"{own} of your computations run" if own else "computations of other clients run"
        return ToolError(
            ErrorCode.BUSY,
            f"{what} had no turn within {waited_s:.3g} s: {running}, and others are waiting",
            "Nothing was run. Call again when one of the others has answered, and send fewer at a time.",
            facts={"retry_after_s": 2},
        )
