"""How many requests a second each principal may send; a request over it waits a moment, or is refused.

R-LIMIT-1, R-HTTP-4. It stands behind the reading of the token, so that a flood costs its own sender's turns only:
without a token nobody has any to lose, and gets the SDK's 401.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

from goat_mcp.server.http.guard import Refusal, principal_of

MAX_QUEUE_S = 1.0
_BURST_S = 2.0
_SLOW_DOWN = Refusal(429, "too many requests; slow down", ((b"retry-after", b"1"),))


@dataclass
class RateLimiter:
    """A token bucket: `per_s` requests a second, bursts of two seconds' worth; 0 is no limit."""

    per_s: float
    _allowance: float = field(init=False)
    _refilled_at_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._allowance = self.per_s * _BURST_S

    def wait_s(self) -> float:
        """Seconds the next request has to wait for its turn; its turn is taken."""
        if self.per_s <= 0:
            return 0.0
        now = time.monotonic()
        self._allowance = min(self.per_s * _BURST_S, self._allowance + (now - self._refilled_at_s) * self.per_s)
        self._refilled_at_s = now
        self._allowance -= 1
        return max(0.0, -self._allowance / self.per_s)

    def give_back(self) -> None:
        self._allowance += 1


@dataclass
class PrincipalRateLimiter:
    """ASGI middleware: a bucket for each principal. Without tokens all clients are one principal."""

    app: ASGIApp
    per_s: float
    needs_token: bool
    _buckets: dict[str, RateLimiter] = field(default_factory=dict[str, RateLimiter])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = principal_of(scope, needs_token=self.needs_token) if scope["type"] == "http" else None
        if principal is None:
            await self.app(scope, receive, send)
            return
        bucket = self._buckets.setdefault(principal, RateLimiter(self.per_s))
        wait_s = bucket.wait_s()
        if wait_s > MAX_QUEUE_S:
            bucket.give_back()
            await _SLOW_DOWN.answer(send)
            return
        if wait_s:
            await anyio.sleep(wait_s)
        await self.app(scope, receive, send)
