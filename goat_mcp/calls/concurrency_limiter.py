"""How many calls run at a time: of one principal, and of all (R-LIMIT-1), and which these are.

Conflicts between them: `scheduler`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, cast

import anyio

from goat_mcp.core.calling_client import CallingClient, ClientRequest, RequestNotSent
from goat_mcp.core.cancel_scopes import cancel_scope
from goat_mcp.core.concurrency_limiter import ConcurrencyLimiter, Owner
from goat_mcp.core.context import Progress, ToolContext
from goat_mcp.core.elicitation import Answer, Form, nobody_to_ask
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.spec import ToolSpec

PER_PRINCIPAL = 16
IN_ALL = 64
QUEUE_S = 10.0
"""How long a call waits for a permit before it is refused."""
MAX_WAITING = 128
"""Calls of one principal that wait; a flood is refused at once."""
MAX_AWAY = 256
"""Calls of one principal that upstreams work on while others use their permits. Later ones keep theirs."""
_INVALID_REQUEST = -32600


class CallLimiter:
    """Permits for running calls, with turns for all principals alike, but never more than `per_principal` for one.

    A call that waits for a person, its client, an upstream or a conflicting call releases its permit meanwhile: waiting
    costs nothing, and an upstream that hangs must not keep calls of others from running (ISO-1). Afterwards the call
    goes on at once, even if that makes one more than the limit.
    """

    def __init__(self, per_principal: int = PER_PRINCIPAL, in_all: int = IN_ALL, *, queue_s: float = QUEUE_S) -> None:
        self._per_principal = per_principal
        self._in_all = in_all
        self._queue_s = queue_s
        # Each depth of agents has permits of its own: a call waits only for deeper ones, and a deeper one never for it,
        # so that they cannot wait for each other.
        self._of_depth: dict[int, ConcurrencyLimiter] = {}
        self._away: dict[str, int] = {}
        self._left: anyio.Event | None = None
        """Set when no call runs any more; None if nobody waits for that."""
        self.permits: set[Permit] = set()
        """Of all calls that run now, also of those that wait for somebody."""
        self.on_tool_elsewhere: Callable[[], None] | None = None
        """Called once when the next upstream begins to run a tool."""

    def of(self, ctx: ToolContext, tool: str = "") -> Permit:
        """The permit of one call, with a context to run it with. Entering waits, and may raise `ToolError(BUSY)`."""
        limiter = self._of_depth.get(ctx.rights.depth)
        if limiter is None:
            limiter = self._of_depth[ctx.rights.depth] = ConcurrencyLimiter(self._in_all, self._per_principal)
        return Permit(self, limiter, ctx, tool)

    async def take(self, limiter: ConcurrencyLimiter, owner: Owner, wait_left_s: Callable[[], float]) -> None:
        if limiter.has_room(owner):
            limiter.enter(owner)
            return
        if limiter.waiting(owner) >= MAX_WAITING:
            raise self._busy(limiter, owner, f"{MAX_WAITING} more are waiting")
        wait_s = min(self._queue_s, wait_left_s())
        if not await limiter.take(owner, wait_s):
            raise self._busy(limiter, owner, f"others were first for {wait_s:.0f} s")

    def leave(self, limiter: ConcurrencyLimiter, owner: Owner) -> None:
        limiter.leave(owner)
        if self._left is not None and not limiter.running():
            self._left.set()

    def running(self) -> int:
        """How many calls have a permit now."""
        return sum(limiter.running() for limiter in self._of_depth.values())

    def waiting(self) -> int:
        """How many calls wait for one."""
        return sum(limiter.waiting() for limiter in self._of_depth.values())

    async def none_running(self) -> None:
        """Wait until no call runs."""
        while self.running():
            self._left = anyio.Event()
            await self._left.wait()
        self._left = None

    def may_go_away(self, principal: str) -> bool:
        """Whether one more call may release its permit while an upstream works on it. Ends with `back_from_away`."""
        away = self._away.get(principal, 0)
        if away >= MAX_AWAY:
            return False
        self._away[principal] = away + 1
        return True

    def back_from_away(self, principal: str) -> None:
        self._away[principal] -= 1
        if not self._away[principal]:
            del self._away[principal]

    def _busy(self, limiter: ConcurrencyLimiter, owner: Owner, others: str) -> ToolError:
        if limiter.running(owner) >= self._per_principal:
            full = f"{self._per_principal} of your calls are running (limits.concurrent_calls)"
        else:
            full = f"{self._in_all} calls of all clients are running (limits.concurrent_calls_in_all)"
        return ToolError(
            ErrorCode.BUSY,
            f"{full}, and {others}",
            "Nothing was run. Call again when one of the others has answered, and send fewer at a time.",
            facts={"retry_after_s": 1},
        )


class CallProgress(NamedTuple):
    """What a call has reported last."""

    done: float
    total: float | None
    message: str | None


class Permit:
    """One running call, from entering to leaving. While it waits for others, its permit is released."""

    # Contexts are written out here: as generators they cost three times as much, and every call has them.
    __slots__ = (
        "_ask",
        "_calls",
        "_client",
        "_has_ended",
        "_limiter",
        "_owner",
        "_report",
        "_scope",
        "_waits",
        "ctx",
        "is_left",
        "progress",
        "runs_elsewhere",
        "tool",
    )

    def __init__(self, calls: CallLimiter, limiter: ConcurrencyLimiter, ctx: ToolContext, tool: str = "") -> None:
        self.tool = tool
        self.progress: CallProgress | None = None
        self._scope = cancel_scope()
        self._report = ctx.progress
        self._calls = calls
        self._limiter = limiter
        self._owner = (ctx.principal,)
        self._ask = ctx.ask
        self._waits = 0
        self._has_ended = False
        self.runs_elsewhere: ToolSpec | None = None
        """The tool, while an upstream runs it."""
        self.is_left = False
        """Whether it goes on as a background task: its client has an answer."""
        # All but asking is the client's own.
        self._client = _ReleasingClient(ctx.client, self.released) if ctx.client is not None else None
        self.ctx = ctx.changed(
            ask=self._ask_released,
            client=cast("CallingClient | None", self._client),
            while_elsewhere=partial(_Released, self, to_upstream=True),
            progress=self._note_progress,
            is_left=self._was_left,
        )

    async def __aenter__(self) -> Permit:
        await self._calls.take(self._limiter, self._owner, self.ctx.wait_left_s)
        self._calls.permits.add(self)
        self._scope.__enter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._calls.permits.discard(self)
        self._has_ended = True
        # An upstream's request waits in a task of its own: it may still have the permit released when the call ends.
        if not self._waits:
            self._calls.leave(self._limiter, self._owner)
        has_ended_it = self._scope.__exit__(exc_type, exc_val, exc_tb)
        if has_ended_it or (self._scope.cancel_called and isinstance(exc_val, ToolError)):
            raise ToolError(
                ErrorCode.CANCELLED,
                "the user cancelled this call while it ran",
                "What it had done by then stays. Do not repeat it; ask the user how to go on.",
            ) from None

    @property
    def is_asking(self) -> bool:
        """Whether a person is asked while an upstream works on the call."""
        return self._waits > 1

    def leave(self, report: Progress) -> None:
        """Its client has an answer. Nobody is asked for it any more, and its progress goes to `report`."""
        self.is_left, self._report, self._ask = True, report, nobody_to_ask
        if self._client is not None:
            self._client.is_left = True
        self._calls.permits.discard(self)

    def _was_left(self) -> bool:
        return self.is_left

    def cancel(self) -> None:
        """End the call, because the user wants it: it answers with `ToolError(CANCELLED)`."""
        self._scope.cancel()

    def released(self) -> AbstractContextManager[None]:
        """Until the block ends, another call may run in place of this one."""
        return _Released(self)

    def release(self, *, to_upstream: bool, runs: ToolSpec | None = None) -> bool:
        """Whether it was released: an upstream works on `MAX_AWAY` calls of one principal at most in this way."""
        if to_upstream and not self._calls.may_go_away(self._owner[0]):
            return False
        self._waits += 1
        if self._waits == 1 and not self._has_ended:
            self._calls.leave(self._limiter, self._owner)
        if runs is not None:
            self.runs_elsewhere = runs
            if (begun := self._calls.on_tool_elsewhere) is not None:
                self._calls.on_tool_elsewhere = None
                begun()
        return True

    def resume(self, *, from_upstream: bool) -> None:
        self._waits -= 1
        if not self._waits and not self._has_ended:
            self._limiter.enter(self._owner)
        if from_upstream:
            self.runs_elsewhere = None
            self._calls.back_from_away(self._owner[0])

    async def _ask_released(self, form: Form) -> Answer:
        with self.released():
            return await self._ask(form)

    async def _note_progress(
        self,
        done: float,
        total: float | None = None,
        message: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.progress = CallProgress(done, total, message)
        await self._report(done, total, message, meta=meta)


class _Released:
    __slots__ = ("_is_released", "_permit", "_runs", "_to_upstream")

    def __init__(self, permit: Permit, runs: ToolSpec | None = None, *, to_upstream: bool = False) -> None:
        self._permit = permit
        self._runs = runs
        self._to_upstream = to_upstream
        self._is_released = False

    def __enter__(self) -> None:
        self._is_released = self._permit.release(to_upstream=self._to_upstream, runs=self._runs)

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        if self._is_released:
            self._permit.resume(from_upstream=self._to_upstream)


class _ReleasingClient:
    """A `CallingClient` that releases the permit while the client is asked: one that has gone never answers."""

    def __init__(self, client: CallingClient, released: Callable[[], AbstractContextManager[None]]) -> None:
        self._client = client
        self._released = released
        self.is_left = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        if self.is_left:
            raise RequestNotSent(_INVALID_REQUEST, "the call goes on in the background, where nobody can be asked")
        with self._released():
            return await self._client.ask(requests)

    async def roots(self) -> Sequence[Path]:
        if (known := self._client.known_roots) is not None:
            # Nobody is asked: a permit released for no time at all would let one more call in.
            return known
        if self.is_left:
            return ()
        with self._released():
            return await self._client.roots()
