"""How many requests a second each principal may send; a request over it waits a moment, or is refused.

R-LIMIT-1, R-HTTP-4. It stands behind the reading of the token, so that a flood costs its own sender's turns only:
without a token nobody has any to lose, and gets the SDK's 401.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.server.http.guard import Refusal, principal_of

MAX_QUEUE_S = 1.0
_BURST_S = 2.0
_SLOW_DOWN = Refusal(429, "too many requests; slow down", ((b"retry-after", b"1"),))


@dataclass
class PrincipalRateLimiter:
    """ASGI middleware: `per_s` requests a second for each principal, in bursts of two seconds' worth; 0 is no limit.

    Without tokens all clients are one principal.
    """

    app: ASGIApp
    per_s: float
    needs_token: bool
    _buckets: dict[str, TokenBucket] = field(default_factory=dict[str, TokenBucket])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = principal_of(scope, needs_token=self.needs_token) if scope["type"] == "http" else None
        if principal is None or self.per_s <= 0:
            await self.app(scope, receive, send)
            return
        bucket = self._buckets.setdefault(principal, TokenBucket(self.per_s, self.per_s * _BURST_S))
        wait_s = bucket.spend(1.0)
        if wait_s > MAX_QUEUE_S:
            bucket.spend(-1.0)  # it is refused, so it costs nothing
            await _SLOW_DOWN.answer(send)
            return
        if wait_s:
            await anyio.sleep(wait_s)
        await self.app(scope, receive, send)
