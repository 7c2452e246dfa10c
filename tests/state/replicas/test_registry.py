"""Which replicas are alive, as each of them sees it."""

from __future__ import annotations

import secrets
from typing import Any

import anyio
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.redis.connection import RedisConnection
from goat_mcp.state.replicas.registry import ReplicaRegistry
from goat_mcp.state.replicas.replica import MAX_NAME_CHARS, Replica, default_name
from tests.redis_server import RedisServer

pytestmark = pytest.mark.anyio
KEYS = (b"key-of-the-tests-0123456789-0123456789",)
SOON_S = 20.0


def silent(event: str, **fields: Any) -> None:
    """No log."""


def registry(
    redis: RedisConnection, name: str, url: str = "", *, keys: tuple[bytes, ...] = KEYS, lease_s: float = 60.0
) -> ReplicaRegistry:
    return ReplicaRegistry(
        redis, Replica(name, url or f"http://{name}:1", "1.0", boot=secrets.token_hex(4)), keys, lease_s, silent
    )


def names(registry: ReplicaRegistry) -> list[str]:
    return [one.name for one in registry.live]


async def test_replicas_see_each_other_by_name_with_address_and_version(redis: RedisConnection) -> None:
    a, b = registry(redis, "a"), registry(redis, "b")

    await a.register()
    await b.register()
    await a.refresh()

    assert names(a) == names(b) == ["a", "b"]
    found = await a.find("b")
    assert found is not None
    assert (found.url, found.version, found.fence) == ("http://b:1", "1.0", b.me.fence)
    assert a.me.fence < b.me.fence
    assert await a.find("c") is None


async def test_a_name_that_the_copy_does_not_have_is_looked_up(redis: RedisConnection) -> None:
    a, b = registry(redis, "a"), registry(redis, "b")
    await a.register()
    await b.register()

    assert names(a) == ["a"]
    assert await a.find("b") == b.me
    asked = redis.asked
    assert await a.find("b") == b.me
    assert redis.asked == asked


async def test_who_looks_for_one_replica_together_asks_once(redis: RedisConnection) -> None:
    a, b = registry(redis, "a"), registry(redis, "b")
    await a.register()
    await b.register()
    asked = redis.asked

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(a.find, "b")

    assert redis.asked - asked <= 2


async def test_one_that_has_gone_is_gone_for_all_and_who_waits_for_that_hears_it(
    redis: RedisConnection, server: RedisServer
) -> None:
    a, b = registry(redis, "a"), registry(redis, "b")
    await a.register()
    await b.register()
    await a.refresh()
    heard = anyio.Event()

    async def wait() -> None:
        await a.until_gone(b.me)
        heard.set()

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await a.refresh()
        assert not heard.is_set()
        server.ask("DEL", redis.key("replicas:entry:b"))
        await a.refresh()
        with anyio.fail_after(SOON_S):
            await heard.wait()

    assert names(a) == ["a"]
    assert server.ask("SMEMBERS", redis.key("replicas:names")).split()[2::2] == ["a"]


async def test_a_process_that_starts_again_at_its_address_takes_its_name_at_once(redis: RedisConnection) -> None:
    before, after, other = registry(redis, "a"), registry(redis, "a"), registry(redis, "b")
    await before.register()
    await other.register()

    await after.register()

    assert after.me.fence > before.me.fence
    with anyio.fail_after(SOON_S):
        await other.refresh()
        await other.until_gone(before.me)
    assert await other.find("a") == after.me


async def test_a_name_that_another_live_one_has_is_refused(redis: RedisConnection) -> None:
    await registry(redis, "a").register()

    with pytest.raises(ToolError) as refused:
        await registry(redis, "a", "http://elsewhere:1", lease_s=0.2).register()

    assert refused.value.code is ErrorCode.CONFIG


async def test_an_entry_that_no_replica_has_signed_is_nobody(redis: RedisConnection) -> None:
    a = registry(redis, "a")
    await a.register()
    await registry(redis, "evil", keys=(b"another-key-0123456789-0123456789-01",)).register()

    assert await a.find("evil") is None


async def test_while_the_key_is_replaced_replicas_with_both_see_each_other(redis: RedisConnection) -> None:
    new = b"new-key-of-the-tests-0123456789-0123456789"
    a, b = registry(redis, "a", keys=(*KEYS, new)), registry(redis, "b", keys=(new, *KEYS))
    await a.register()
    await b.register()
    await a.refresh()

    assert names(a) == names(b) == ["a", "b"]


async def test_one_that_leaves_is_still_there_and_says_so(redis: RedisConnection) -> None:
    a, b = registry(redis, "a"), registry(redis, "b")
    await a.register()
    await b.register()

    await b.leave()
    await a.refresh()
    assert [one.is_leaving for one in a.live] == [False, True]
    await b.release()
    await a.refresh()

    assert names(a) == ["a"]


async def test_one_that_was_taken_for_dead_is_told_and_comes_back_with_a_larger_number(
    redis: RedisConnection, server: RedisServer
) -> None:
    a = registry(redis, "a", lease_s=1.0)
    await a.register()
    before = a.me.fence
    lost = anyio.Event()
    a.on_lost(lost.set)

    async with anyio.create_task_group() as group:
        group.start_soon(a.run)
        server.ask("FLUSHALL")
        with anyio.fail_after(SOON_S):
            await lost.wait()
            while a.me.fence == before or not a.is_held:  # noqa: ASYNC110  # the registry tells nobody of it
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()

    assert a.me.fence > before


def test_the_default_name_is_of_the_host_and_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: f"web_1.{'x' * 99}")

    assert default_name(8765).startswith("web-1-xxx")
    assert default_name(8765).endswith("-8765")
    assert len(default_name(8765)) == MAX_NAME_CHARS
