"""A flood of one principal is slowed down, and nobody else's (R-LIMIT-1)."""

from __future__ import annotations

import pytest
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import Message, Receive, Scope, Send

from goat_mcp.server.http.principal_limits import PrincipalRateLimiter

pytestmark = pytest.mark.anyio


async def answered(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def ask(rates: PrincipalRateLimiter, principal: str | None) -> Message:
    scope: Scope = {"type": "http"}
    if principal is not None:
        scope["user"] = AuthenticatedUser(AccessToken(token="t", client_id=principal, subject=principal, scopes=[]))

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await rates(scope, receive, send)
    return sent[0]


async def statuses(rates: PrincipalRateLimiter, *principals: str | None) -> list[int]:
    return [(await ask(rates, principal))["status"] for principal in principals]


async def test_ht_29_who_floods_is_told_to_slow_down_and_the_others_are_served() -> None:
    rates = PrincipalRateLimiter(answered, per_s=0.5, needs_token=True)

    flood = await statuses(rates, *["a"] * 20)
    others = await statuses(rates, "b", "c")
    refused = await ask(rates, "a")

    assert flood == [200] + [429] * 19
    assert others == [200, 200]
    assert (b"retry-after", b"1") in refused["headers"]


async def test_a_flood_without_a_token_takes_no_turn_of_anybody() -> None:
    """What comes without one is refused behind this place, by the SDK."""
    rates = PrincipalRateLimiter(answered, per_s=0.5, needs_token=True)

    await statuses(rates, *[None] * 100)

    assert await statuses(rates, "a") == [200]


async def test_where_no_token_is_needed_all_share_one_limit() -> None:
    rates = PrincipalRateLimiter(answered, per_s=0.5, needs_token=False)

    assert await statuses(rates, None, None) == [200, 429]


async def test_zero_is_no_limit() -> None:
    rates = PrincipalRateLimiter(answered, per_s=0, needs_token=True)

    assert await statuses(rates, *["a"] * 500) == [200] * 500
