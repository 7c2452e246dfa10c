"""How many requests an upstream is given at a time; a few more wait, the rest is answered `busy` at once (ISO-2).

A request whose client the upstream has asked something is not worked on: others have its permit until the answer is
there, so that a client that never answers keeps nobody from the upstream.
"""

from __future__ import annotations

from types import TracebackType

from goat_mcp.core.concurrency_limiter import ConcurrencyLimiter, Owner
from goat_mcp.core.errors import ErrorCode, ToolError

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
        if self.limiter.has_room(owner):
            self.limiter.enter(owner)
            return
        if (waiting := self.limiter.waiting()) >= MAX_QUEUED:
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
