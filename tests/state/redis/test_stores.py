"""Each store of shared state keeps the same promises in a database of one machine and in Redis."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.errors import ToolError
from goat_mcp.state.database import Database, DatabaseTokens, OneTimeTokens
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.redis.address import parsed_address
from goat_mcp.state.redis.connection import RedisConnection
from goat_mcp.state.redis.stores import RedisConfigStore, RedisTodoStore, RedisTokens
from goat_mcp.state.session_settings import ConfigStore, DatabaseConfigStore
from goat_mcp.state.todos import DatabaseTodoStore, Todo, TodoStore
from tests.redis_server import RedisServer, redis_server

pytestmark = pytest.mark.anyio
TODO: Todo = {"content": "é", "status": "pending", "activeForm": "doing"}


def _ignore(event: str, **fields: Any) -> None: ...


@dataclass
class Stores:
    todos: TodoStore
    settings: ConfigStore
    tokens: OneTimeTokens


@pytest.fixture(params=["sqlite", "redis"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Stores]:
    if request.param == "redis":
        redis: RedisConnection = request.getfixturevalue("redis")
        yield Stores(RedisTodoStore(redis), RedisConfigStore(redis), RedisTokens(redis, 60))
        return
    database = Database(StateDirectory(tmp_path / "state"), _ignore)
    yield Stores(DatabaseTodoStore(database), DatabaseConfigStore(database), DatabaseTokens(database, 60))
    database.close()


async def test_a_list_is_replaced_and_the_one_before_returned(stores: Stores) -> None:
    assert await stores.todos.read("a") == []
    assert await stores.todos.replace("a", [TODO]) == []
    assert await stores.todos.replace("a", []) == [TODO]
    assert await stores.todos.read("a") == []


async def test_lists_of_two_owners_are_apart(stores: Stores) -> None:
    await stores.todos.replace('["/w","a"]', [TODO])

    assert await stores.todos.read('["/w","b"]') == []
    assert await stores.todos.read('["/w","a"]') == [TODO]


@pytest.mark.parametrize("session", ["principal:a", "half \ud800 of a pair"])
async def test_settings_of_a_session_are_kept_by_key(stores: Stores, session: str) -> None:
    await stores.settings.write(session, "log_level", "debug")
    await stores.settings.write(session, "output.max_chars", 5000)
    await stores.settings.remove(session, "log_level")

    assert await stores.settings.read(session) == {"output.max_chars": 5000}
    assert await stores.settings.read("principal:b") == {}


async def test_a_token_is_good_once_whoever_asks_at_the_same_time(stores: Stores) -> None:
    good: list[bool] = []

    async def use() -> None:
        good.append(await stores.tokens.use("t"))

    await stores.tokens.issue("t")
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(use)

    assert good.count(True) == 1


async def test_a_redis_that_has_lost_everything_grants_no_token(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        redis = RedisConnection(parsed_address(server.url), "test")
        tokens = RedisTokens(redis, 60)
        await tokens.issue("t")
        server.stop()
        with pytest.raises(ToolError):
            await tokens.use("t")
        server.start()

        assert not await tokens.use("t")
        await redis.close()


async def test_a_redis_that_was_restored_from_a_file_grants_no_token_of_before(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        redis = RedisConnection(parsed_address(server.url), "test")
        tokens = RedisTokens(redis, 60)
        await tokens.issue("t")
        assert "OK" in server.ask("SAVE")
        assert await tokens.use("t")
        server.stop()
        server.start()
        assert "{test}:token:t" in server.ask("KEYS", "*")

        await redis.close()
        assert not await tokens.use("t")
        await redis.close()


async def test_a_token_that_nobody_issued_is_no_good(server: RedisServer, redis: RedisConnection) -> None:
    assert not await RedisTokens(redis, 60).use("made-up")


async def test_one_token_at_two_replicas_1000_times_one_wins(server: RedisServer) -> None:
    replicas = [RedisConnection(parsed_address(server.url), "test") for _ in range(2)]
    tokens = [RedisTokens(redis, 60) for redis in replicas]
    wins = [0] * 1000

    async def use(one: OneTimeTokens, number: int) -> None:
        won = await one.use(str(number))
        wins[number] += won

    for number in range(1000):
        await tokens[0].issue(str(number))
        async with anyio.create_task_group() as group:
            for one in tokens:
                group.start_soon(use, one, number)

    assert wins == [1] * 1000
    for redis in replicas:
        await redis.close()
