"""The connection to a real Redis: it comes up at first use, and again after the server was away."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.redis.address import parsed_address
from goat_mcp.state.redis.connection import RedisConnection
from tests.redis_server import RedisServer, redis_server

pytestmark = pytest.mark.anyio


async def test_a_value_is_read_as_it_was_written_under_a_key_with_the_prefix(
    server: RedisServer, redis: RedisConnection
) -> None:
    await redis.write("a:b", "é", lasts_s=60)

    assert await redis.read("a", "b") == "é"
    assert await redis.read_all(["no", "a:b"]) == [None, "é"]
    assert "{test}:a:b" in server.ask("KEYS", "*")
    assert 0 < int(server.ask("PTTL", "{test}:a:b")[1:]) <= 60_000


async def test_of_all_who_add_a_key_at_once_one_succeeds(redis: RedisConnection) -> None:
    added: list[bool] = []

    async def add(number: int) -> None:
        added.append(await redis.add("one", str(number), lasts_s=60))

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(add, number)

    assert added.count(True) == 1


async def test_a_script_runs_over_keys_of_one_prefix(redis: RedisConnection) -> None:
    script = "redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], ARGV[2]}"

    assert await redis.run_script(script, ["x"], ["1", 2]) == ["{test}:x", "2"]
    assert await redis.read("x") == "1"


async def test_messages_reach_those_who_listen(server: RedisServer, redis: RedisConnection) -> None:
    async with redis.listening("news") as next_message:
        await redis.publish("other", "no")
        await redis.publish("news", "yes")

        assert await next_message() == ("news", "yes")
        assert await next_message() is None


async def test_a_server_that_was_away_is_found_again(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        redis = RedisConnection(parsed_address(server.url), "test")
        await redis.write("key", "value")
        server.stop()

        with pytest.raises(ToolError) as gone:
            await redis.read("key")

        assert gone.value.code == ErrorCode.IO
        assert server.url.removesuffix("/0") in gone.value.message
        assert redis.problem
        server.start()
        assert await redis.read("key") is None
        assert not redis.problem
        await redis.close()


async def test_a_wrong_password_is_an_error_that_shows_none(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--user", "me", "on", ">hunter2", "~*", "+@all", "--user", "default", "off") as server:
        address = server.url.replace("redis://", "redis://me:hunter2@")
        redis = RedisConnection(parsed_address(address), "test")
        assert await redis.ping() > 0
        wrong = RedisConnection(parsed_address(address.replace("hunter2", "other")), "test")

        with pytest.raises(ToolError) as refused:
            await wrong.ping()

        assert "other" not in refused.value.message
        await redis.close()
        await wrong.close()
