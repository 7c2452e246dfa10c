"""A flood of one principal is slowed down, and nobody else's (R-LIMIT-1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import Message, Receive, Scope, Send

from goat_mcp.server.http.principal_limits import PrincipalRateLimiter, PrincipalRates
from goat_mcp.server.http.shared_rates import SharedRates
from tests.redis_server import RedisServer, redis_server
from tests.shared_states import shared_state

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
    rates = PrincipalRateLimiter(answered, PrincipalRates(0.5), needs_token=True)

    flood = await statuses(rates, *["a"] * 20)
    others = await statuses(rates, "b", "c")
    refused = await ask(rates, "a")

    assert flood == [200] + [429] * 19
    assert others == [200, 200]
    assert (b"retry-after", b"1") in refused["headers"]


async def test_a_flood_without_a_token_takes_no_turn_of_anybody() -> None:
    """What comes without one is refused behind this place, by the SDK."""
    rates = PrincipalRateLimiter(answered, PrincipalRates(0.5), needs_token=True)

    await statuses(rates, *[None] * 100)

    assert await statuses(rates, "a") == [200]


async def test_where_no_token_is_needed_all_share_one_limit() -> None:
    rates = PrincipalRateLimiter(answered, PrincipalRates(0.5), needs_token=False)

    assert await statuses(rates, None, None) == [200, 429]


async def test_zero_is_no_limit() -> None:
    rates = PrincipalRateLimiter(answered, PrincipalRates(0), needs_token=True)

    assert await statuses(rates, *["a"] * 500) == [200] * 500


async def test_what_a_principal_spends_on_other_servers_counts_here_a_second_later(one_redis: RedisServer) -> None:
    redis = [shared_state(one_redis, "rates").connection for _ in range(2)]
    rates = [PrincipalRates(5.0) for _ in range(2)]
    servers = [PrincipalRateLimiter(answered, one, needs_token=True) for one in rates]
    shared = [SharedRates(one, each) for one, each in zip(rates, redis, strict=True)]

    async def tell() -> None:
        for one in shared:
            await one.tell()

    await statuses(servers[0], "a", "b")
    await statuses(servers[1], "a", "b")
    await tell()
    flood = await statuses(servers[0], *["a"] * 9)
    await statuses(servers[1], "a", "b")
    await tell()

    assert flood == [200] * 9
    assert (rates[1].spend("a") or 0) > 0
    assert rates[1].spend("b") == 0
    for each in redis:
        await each.close()


async def test_while_the_shared_state_is_away_each_server_counts_for_itself(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        redis = shared_state(server, "rates").connection
        rates = PrincipalRates(5.0)
        shared = SharedRates(rates, redis)
        server.stop()
        assert await statuses(PrincipalRateLimiter(answered, rates, needs_token=True), "a") == [200]

        await shared.tell()

        assert redis.problem
        assert not rates.spent
        await redis.close()
