"""A cluster, and a primary that Sentinels know: everything that is asked of one Redis works there, too."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import anyio.to_thread
import pytest

from goat_mcp.state.redis.address import parsed_address
from goat_mcp.state.redis.connection import RedisConnection
from goat_mcp.state.redis.stores import RedisConfigStore, RedisTodoStore, RedisTokens
from tests.free_port import free_port
from tests.redis_server import redis_server

pytestmark = pytest.mark.anyio
WAIT_S = 60


def until(holds: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < give_up_s
        time.sleep(0.05)


async def works(url: str) -> None:
    redis = RedisConnection(parsed_address(url), "test")
    tokens, settings, todos = RedisTokens(redis, 60), RedisConfigStore(redis), RedisTodoStore(redis)

    assert await redis.ping() > 0
    await tokens.issue("t")
    assert [await tokens.use("t"), await tokens.use("t")] == [True, False]
    await settings.write("s", "log_level", "debug")
    assert await settings.read("s") == {"log_level": "debug"}
    assert await todos.replace("o", []) == []
    assert await redis.read_all(["a", "b"]) == [None, None]
    async with redis.listening("news") as next_message:
        await redis.publish("news", "yes")
        assert await next_message() == ("news", "yes")
    script = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[2])"
    assert await anyio.to_thread.run_sync(redis.run_script_here, script, ["x", "y"], ["1"]) is None

    await redis.close()


async def test_a_cluster_works_as_one_server_does(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--cluster-enabled", "yes", "--cluster-port", str(free_port())) as node:
        assert "OK" in node.ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        until(lambda: "cluster_state:ok" in node.ask("CLUSTER", "INFO"))

        await works(f"redis+cluster://127.0.0.1:{node.port}")


async def test_a_primary_is_found_by_its_sentinels(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--requirepass", "hunter2") as primary:
        config = tmp_path / "sentinel.conf"
        config.write_text(
            f"sentinel monitor main 127.0.0.1 {primary.port} 1\nsentinel auth-pass main hunter2\n"
            "requirepass other-secret\n"
        )
        folder = tmp_path / "sentinel"
        folder.mkdir()
        with redis_server(folder, config=config) as sentinel:
            missing = free_port()
            url = f"redis+sentinel://:hunter2@127.0.0.1:{missing},127.0.0.1:{sentinel.port}/main/1"

            await works(f"{url}?sentinel_password=other-secret")
