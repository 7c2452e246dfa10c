"""How many computations run at a time, and which is next: no client waits long because another one asks for much."""

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
"""The last slot is for the next principal."""
QUEUE_S = 10.0
"""How long a call waits for its turn before it is refused."""


@dataclass(eq=False)
class _Request:
    principal: str
    session: str
    granted: anyio.Event = field(default_factory=anyio.Event)

    @property
    def owners(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (self.principal,), (self.principal, self.session)


class FairQueue:
    """A free slot goes to the principal that holds the fewest; among equals, to the one that was served longest ago.
    The same holds among the sessions of one principal."""

    def __init__(self, in_all: int = IN_ALL, per_principal: int = PER_PRINCIPAL, *, queue_s: float = QUEUE_S) -> None:
        self._in_all = in_all
        self._per_principal = per_principal
        self._queue_s = queue_s
        self._running: Counter[tuple[str, ...]] = Counter()
        """By principal, and by principal and session."""
        self._in_use = 0
        self._waiting: list[_Request] = []
        self._served: dict[tuple[str, ...], int] = {}
        self._turns = 0

    @asynccontextmanager
    async def of(self, ctx: ToolContext, what: str) -> AsyncGenerator[None]:
        """Hold a slot. `what` names the work in errors. Raises `ToolError(BUSY)`."""
        turn = _Request(ctx.principal, ctx.session_key)
        wait_s = min(self._queue_s, ctx.wait_left_s())
        self._waiting.append(turn)
        self._hand_out_slots()
        try:
            with anyio.move_on_after(wait_s):
                await turn.granted.wait()
            if not turn.granted.is_set():
                raise self._busy(turn, what, wait_s)
            yield
        finally:
            if turn.granted.is_set():
                self._release(turn)
            else:
                self._waiting.remove(turn)

    def _hand_out_slots(self) -> None:
        while (turn := self._next()) is not None:
            self._waiting.remove(turn)
            self._in_use += 1
            self._turns += 1
            for owner in turn.owners:
                self._running[owner] += 1
                self._served[owner] = self._turns
            # The slot is theirs before they wake: nobody comes in between.
            turn.granted.set()

    def _next(self) -> _Request | None:
        if self._in_use >= self._in_all:
            return None
        may_run = [turn for turn in self._waiting if self._running[turn.owners[0]] < self._per_principal]
        return min(may_run, key=self._rank, default=None)

    def _rank(self, turn: _Request) -> list[int]:
        return [rank for owner in turn.owners for rank in (self._running[owner], self._served.get(owner, 0))]

    def _release(self, turn: _Request) -> None:
        self._in_use -= 1
        for owner in turn.owners:
            self._running[owner] -= 1
        self._hand_out_slots()
        self._forget()

    def _forget(self) -> None:
        """Whoever neither runs nor waits is not owed anything."""
        known = {owner for turn in self._waiting for owner in turn.owners} | (+self._running).keys()
        self._running = +self._running
        self._served = {owner: turn for owner, turn in self._served.items() if owner in known}

    def _busy(self, turn: _Request, what: str, waited_s: float) -> ToolError:
        own = self._running[turn.owners[0]]
        running = f"{own} of your computations run" if own else "computations of other clients run"
        return ToolError(
            ErrorCode.BUSY,
            f"{what} had no turn within {waited_s:.3g} s: {running}, and others are waiting",
            "Nothing was run. Call again when one of the others has answered, and send fewer at a time.",
            facts={"retry_after_s": 2},
        )
