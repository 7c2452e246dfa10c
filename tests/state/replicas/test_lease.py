"""One holder at a time, and a number that says who is the later one."""

from __future__ import annotations

import pytest

from goat_mcp.state.redis.connection import RedisConnection
from goat_mcp.state.replicas.lease import Lease
from tests.redis_server import RedisServer

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def lease(redis: RedisConnection, ttl_s: float = 60.0, clock: Clock | None = None) -> Lease:
    return Lease(redis, "thing", "thing:fence", ttl_s, clock=clock or Clock())


async def test_one_of_two_holds_a_name_and_the_other_sees_who(redis: RedisConnection) -> None:
    first, second = lease(redis), lease(redis)

    assert await first.acquire("one:with:colons") is None
    assert await second.acquire("two") == (first.fence, "one:with:colons")

    assert (first.is_held, second.is_held) == (True, False)
    assert not await second.renew("two")


async def test_the_next_holder_has_a_larger_number(redis: RedisConnection) -> None:
    first, second, third = lease(redis), lease(redis), lease(redis)
    await first.acquire("one")
    old = first.fence
    await first.release()

    await second.acquire("two")
    await third.acquire("three", instead_of=second.fence)

    assert old < second.fence < third.fence
    assert not first.is_held


async def test_a_redis_that_has_lost_everything_does_not_give_old_numbers_again(
    redis: RedisConnection, server: RedisServer
) -> None:
    first, second = lease(redis), lease(redis)
    await first.acquire("one")
    server.ask("FLUSHALL")

    await second.acquire("two")

    assert second.fence > first.fence


async def test_who_was_stopped_sees_by_its_own_clock_that_it_is_over(redis: RedisConnection) -> None:
    clock = Clock()
    one = lease(redis, 60.0, clock)
    await one.acquire("one")

    clock.now_s += 59.9
    assert one.is_held
    clock.now_s += 0.2
    assert not one.is_held
    assert await one.renew("one")  # nobody else has had it
    assert one.is_held


async def test_what_is_somebody_elses_now_is_neither_renewed_nor_released(redis: RedisConnection) -> None:
    first, second = lease(redis), lease(redis)
    await first.acquire("one")
    await second.acquire("two", instead_of=first.fence)

    await first.release()
    assert not await first.renew("one")

    assert await lease(redis).acquire("three") == (second.fence, "two")


async def test_it_runs_out_by_itself(redis: RedisConnection, server: RedisServer) -> None:
    await lease(redis, 60.0).acquire("one")

    assert 0 < int(server.ask("PTTL", redis.key("thing")).strip()[1:]) <= 60_000
