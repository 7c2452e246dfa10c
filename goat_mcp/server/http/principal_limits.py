"""What one principal may use of the server: requests a second, and a fair share of sessions and connections.

R-LIMIT-1, R-HTTP-4, R-HTTP-4b. A request over the rate waits a moment, or is refused. The limits stand behind the
reading of the token, so that a flood costs its own sender only: without a token nobody has a share to lose, and gets
the SDK's 401.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.server.http.guard import Refusal, principal_of


class NoRoom(Exception):
    """The principal holds as many as it may, and all of them are in use."""


@dataclass(eq=False)
class Holding:
    """One session or connection of a principal."""

    principal: str
    requests: int = 0
    """Those in progress; an open stream is one."""
    used_at_s: float = field(default_factory=time.monotonic)

    @property
    def can_be_closed(self) -> bool:
        return True

    def begin(self) -> None:
        self.requests += 1
        self.used_at_s = time.monotonic()

    def end(self) -> None:
        self.requests -= 1
        self.used_at_s = time.monotonic()


@dataclass
class FairShares:
    """`capacity` for all principals together; one alone may not take the `reserve`.

    If there is no room, the idlest holding of the largest holder is closed. Holdings in use are closed only for a
    principal that holds fewer: a principal never loses a request to its own next one.
    """

    capacity: int
    reserve: int = 0
    _held: dict[str, set[Holding]] = field(default_factory=dict[str, set[Holding]])

    def __len__(self) -> int:
        return sum(len(holdings) for holdings in self._held.values())

    def add(self, new: Holding) -> Holding | None:
        """Count it. Returns what has to be closed for it, which does not count any more. Raises `NoRoom`."""
        victim = None
        own = len(self._held.get(new.principal, ()))
        if len(self) >= self.capacity or own >= max(1, self.capacity - self.reserve):
            victim = self._idlest(new.principal)
            self.remove(victim)
        self._held.setdefault(new.principal, set()).add(new)
        return victim

    def remove(self, holding: Holding) -> None:
        holdings = self._held.get(holding.principal, set())
        holdings.discard(holding)
        if not holdings:
            self._held.pop(holding.principal, None)

    def _idlest(self, asker: str) -> Holding:
        largest = max(self._held, key=lambda principal: (len(self._held[principal]), principal == asker))
        able = [
            holding
            for holding in self._held[largest]
            if holding.can_be_closed and (largest != asker or not holding.requests)
        ]
        if not able:
            raise NoRoom
        return min(able, key=lambda holding: (holding.requests > 0, holding.used_at_s))


MAX_QUEUE_S = 1.0
_BURST_S = 2.0
MAX_BUCKETS = 10_000
"""An identity provider may know any number of people. A bucket that is forgotten was full again long ago."""
_SLOW_DOWN = Refusal(429, "too many requests; slow down", ((b"retry-after", b"1"),))


@dataclass
class PrincipalRates:
    """`per_s` requests a second for each principal, in bursts of two seconds' worth; 0 is no limit."""

    per_s: float
    spent: Counter[str] | None = None
    """What each has spent here since other servers were last told; None if there are no others."""
    _buckets: dict[str, TokenBucket] = field(default_factory=dict[str, TokenBucket])

    def spend(self, principal: str) -> float | None:
        """For one request. Returns how many seconds it has to wait, None if that is too long: then it costs nothing."""
        bucket = self._of(principal)
        wait_s = bucket.spend(1.0)
        if wait_s > MAX_QUEUE_S:
            bucket.spend(-1.0)
            return None
        if self.spent is not None:
            self.spent[principal] += 1
        return wait_s

    def spent_elsewhere(self, principal: str, requests: int) -> None:
        self._of(principal).spend(requests)

    def _of(self, principal: str) -> TokenBucket:
        # Taken out and put back: the principal that was here longest ago comes first.
        bucket = self._buckets.pop(principal, None) or TokenBucket(self.per_s, self.per_s * _BURST_S)
        self._buckets[principal] = bucket
        if len(self._buckets) > MAX_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        return bucket


@dataclass
class PrincipalRateLimiter:
    """ASGI middleware. Without tokens all clients are one principal."""

    app: ASGIApp
    rates: PrincipalRates
    needs_token: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = principal_of(scope, needs_token=self.needs_token) if scope["type"] == "http" else None
        if principal is None or self.rates.per_s <= 0:
            await self.app(scope, receive, send)
            return
        wait_s = self.rates.spend(principal)
        if wait_s is None:
            await _SLOW_DOWN.answer(send)
            return
        if wait_s:
            await anyio.sleep(wait_s)
        await self.app(scope, receive, send)
