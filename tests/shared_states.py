"""State directories for tests: of one machine, and of servers that share a real Redis."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.options import StateOptions
from goat_mcp.state.redis.shared_state import SharedState
from goat_mcp.state.secret_references import SecretReferences
from tests.redis_server import RedisServer, redis_server

States = Callable[[Path], StateDirectory]


@pytest.fixture(scope="session")
def one_redis(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    """For tests that do not end it; each uses a prefix of its own."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


def shared_state(server: RedisServer, prefix: str) -> SharedState:
    given = {"url": server.url, "key": "k" * 40, "prefix": prefix}
    shared = SharedState.of(StateOptions.model_validate(given), SecretReferences({}))
    assert shared is not None
    return shared


@pytest.fixture(params=["one machine", "shared"])
def states(request: pytest.FixtureRequest) -> Generator[States]:
    """Makes the state directory of a process: in one folder, or in folders of their own and one Redis."""
    prefix, made = secrets.token_hex(8), ExitStack()

    def state(folder: Path) -> StateDirectory:
        if request.param == "one machine":
            return StateDirectory(folder)
        shared = shared_state(request.getfixturevalue("one_redis"), prefix)
        made.callback(shared.connection.close_here)
        return StateDirectory(folder, shared)

    with made:
        yield state
