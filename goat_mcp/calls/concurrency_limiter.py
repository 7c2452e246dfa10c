"""How many calls run at a time: of one principal, and of all (R-LIMIT-1). Conflicts between them: `scheduler`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import anyio

from goat_mcp.core.client_side import ClientRequest, ClientSide
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form
from goat_mcp.core.errors import ErrorCode, ToolError

PER_PRINCIPAL = 16
IN_ALL = 64
QUEUE_S = 10.0
"""How long a call waits for a permit before it is refused."""
MAX_WAITING = 128
"""Calls of one principal that wait; a flood is refused at once."""
MAX_AWAY = 256
"""Calls of one principal that upstreams work on while others use their permits. Later ones keep theirs."""

_Owner = tuple[int, str]
"""Depth and principal. Each depth of agents has permits of its own: a call waits only for deeper ones, and a deeper one
never for it, so that they cannot wait for each other."""


class ConcurrencyLimiter:
    """Permits for running calls, in the order of arrival, but never more than `per_principal` for one principal.

    A call that waits for a person, its client, an upstream or a conflicting call releases its permit meanwhile: waiting
    costs nothing, and an upstream that hangs must not keep calls of others from running (ISO-1). Afterwards the call
    goes on at once, even if that makes one more than the limit.
    """

    def __init__(self, per_principal: int = PER_PRINCIPAL, in_all: int = IN_ALL, *, queue_s: float = QUEUE_S) -> None:
        self._per_principal = per_principal
        self._in_all = in_all
        self._queue_s = queue_s
        # No counters: what they add to a dictionary is written in Python, and a call asks eight times.
        self._running: dict[_Owner, int] = {}
        self._in_depth: dict[int, int] = {}
        self._away: dict[_Owner, int] = {}
        self._waiting: list[tuple[_Owner, anyio.Event]] = []
        self._left = anyio.Event()

    def of(self, ctx: ToolContext) -> Permit:
        """The permit of one call, with a context to run it with. Entering waits, and may raise `ToolError(BUSY)`."""
        return Permit(self, (ctx.rights.depth, ctx.principal), ctx)

    async def take(self, owner: _Owner, wait_left_s: Callable[[], float]) -> None:
        # Nobody who waits could use this permit: each gets one as soon as there is one.
        if self._has_room(owner):
            self.enter(owner)
        else:
            await self._queue(owner, min(self._queue_s, wait_left_s()))

    def enter(self, owner: _Owner) -> None:
        self._running[owner] = self._running.get(owner, 0) + 1
        self._in_depth[owner[0]] = self._in_depth.get(owner[0], 0) + 1

    def leave(self, owner: _Owner) -> None:
        self._in_depth[owner[0]] -= 1
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
            self._left.set()
        for turn in list(self._waiting):
            if self._has_room(turn[0]):
                # The permit is theirs before they wake: nobody comes in between.
                self._waiting.remove(turn)
                self.enter(turn[0])
                turn[1].set()

    async def none_running(self) -> None:
        """Wait until no call runs."""
        while self._running:
            self._left = anyio.Event()
            await self._left.wait()

    def _has_room(self, owner: _Owner) -> bool:
        running, in_depth = self._running.get(owner, 0), self._in_depth.get(owner[0], 0)
        return running < self._per_principal and in_depth < self._in_all

    def may_go_away(self, owner: _Owner) -> bool:
        """Whether one more call may release its permit while an upstream works on it. Ends with `back_from_away`."""
        away = self._away.get(owner, 0)
        if away >= MAX_AWAY:
            return False
        self._away[owner] = away + 1
        return True

    def back_from_away(self, owner: _Owner) -> None:
        self._away[owner] -= 1
        if not self._away[owner]:
            del self._away[owner]

    async def _queue(self, owner: _Owner, wait_s: float) -> None:
        if sum(1 for other, _ in self._waiting if other == owner) >= MAX_WAITING:
            raise self._busy(owner, 0.0)
        turn = (owner, anyio.Event())
        self._waiting.append(turn)
        try:
            with anyio.move_on_after(wait_s):
                await turn[1].wait()
        except BaseException:
            if turn[1].is_set():
                self.leave(owner)
            raise
        finally:
            if turn in self._waiting:
                self._waiting.remove(turn)
        if not turn[1].is_set():
            raise self._busy(owner, wait_s)

    def _busy(self, owner: _Owner, waited_s: float) -> ToolError:
        if self._running.get(owner, 0) >= self._per_principal:
            full = f"{self._per_principal} of your calls are running (limits.concurrent_calls)"
        else:
            full = f"{self._in_all} calls of all clients are running (limits.concurrent_calls_in_all)"
        waited = (
            f", and others were first for {waited_s:.0f} s" if waited_s else f", and {MAX_WAITING} more are waiting"
        )
        return ToolError(
            ErrorCode.BUSY,
            f"{full}{waited}",
            "Nothing was run. Call again when one of the others has answered, and send fewer at a time.",
            facts={"retry_after_s": 1},
        )


class Permit:
    """One running call, from entering to leaving. While it waits for others, its permit is released."""

    # Contexts are written out here: as generators they cost three times as much, and every call has them.
    __slots__ = ("_ask", "_limiter", "_owner", "_waits", "ctx")

    def __init__(self, limiter: ConcurrencyLimiter, owner: _Owner, ctx: ToolContext) -> None:
        self._limiter = limiter
        self._owner = owner
        self._ask = ctx.ask
        self._waits = 0
        # All but asking is the client's own.
        client = cast("ClientSide", _ReleasingClient(ctx.client, self.released)) if ctx.client is not None else None
        self.ctx = ctx.changed(ask=self._ask_released, client=client, while_elsewhere=self.released_to_upstream)

    async def __aenter__(self) -> Permit:
        await self._limiter.take(self._owner, self.ctx.wait_left_s)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._limiter.leave(self._owner)

    def released(self) -> AbstractContextManager[None]:
        """Until the block ends, another call may run in place of this one."""
        return _Released(self)

    def released_to_upstream(self) -> AbstractContextManager[None]:
        """As `released`, while an upstream works on the call; of these a principal has `MAX_AWAY` at most."""
        return _ReleasedToUpstream(self)

    def release(self) -> None:
        self._waits += 1
        if self._waits == 1:
            self._limiter.leave(self._owner)

    def resume(self) -> None:
        self._waits -= 1
        if not self._waits:
            self._limiter.enter(self._owner)

    def release_to_upstream(self) -> bool:
        """Whether it could be released."""
        if not self._limiter.may_go_away(self._owner):
            return False
        self.release()
        return True

    def resume_from_upstream(self) -> None:
        self.resume()
        self._limiter.back_from_away(self._owner)

    async def _ask_released(self, form: Form) -> Answer:
        with self.released():
            return await self._ask(form)


class _Released:
    __slots__ = ("_permit",)

    def __init__(self, permit: Permit) -> None:
        self._permit = permit

    def __enter__(self) -> None:
        self._permit.release()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._permit.resume()


class _ReleasedToUpstream:
    __slots__ = ("_is_released", "_permit")

    def __init__(self, permit: Permit) -> None:
        self._permit = permit
        self._is_released = False

    def __enter__(self) -> None:
        self._is_released = self._permit.release_to_upstream()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        if self._is_released:
            self._permit.resume_from_upstream()


class _ReleasingClient:
    """A `ClientSide` that releases the permit while the client is asked: one that has gone never answers."""

    def __init__(self, client: ClientSide, released: Callable[[], AbstractContextManager[None]]) -> None:
        self._client = client
        self._released = released

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        with self._released():
            return await self._client.ask(requests)

    async def roots(self) -> Sequence[Path]:
        if (known := self._client.known_roots) is not None:
            # Nobody is asked: a permit released for no time at all would let one more call in.
            return known
        with self._released():
            return await self._client.roots()
