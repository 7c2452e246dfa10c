"""A Redis for the tests of one file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator

import pytest

from goat_mcp.state.redis.address import parsed_address
from goat_mcp.state.redis.connection import RedisConnection
from tests.redis_server import RedisServer, redis_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as started:
        yield started


@pytest.fixture
async def redis(server: RedisServer) -> AsyncGenerator[RedisConnection]:
    server.ask("FLUSHALL")
    connection = RedisConnection(parsed_address(server.url), "test")
    yield connection
    await connection.close()
