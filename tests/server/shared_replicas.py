"""Replicas of one server for tests, each with a client, and a state directory of its own: as on several machines."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from goat_mcp.calls.permissions.approval import DENY
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.redis_server import RedisServer
from tests.server.asking import accepts
from tests.tool_doubles import FakeTool

KEY = "the key that all replicas of the tests have"
WAIT_S = 60


@dataclass
class TestReplica:
    """One of several replicas, as far as it knows, and a 2026-07-28 client of it."""

    __test__ = False

    gateway: Gateway
    client: Client


@asynccontextmanager
async def replica(
    folder: Path, name: str, redis: RedisServer, *tools: FakeTool, **settings: Any
) -> AsyncGenerator[TestReplica]:
    """All have the workspace `folder`. Returns once it hears of the others' events."""
    listeners = heard_by(redis) if redis.is_running else 0
    state = {"url": redis.url, "key": KEY}
    gateway = Gateway(
        Settings.model_validate({"workspace": [folder], "state": state, **settings}),
        approval=Approval.ELICIT,
        serves_http=True,
        state=StateDirectory(folder / f"state-{name}"),
    )
    for tool in tools:
        gateway.registry.register(tool)
    adapter = Adapter(gateway, "http")
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode="2026-07-28", elicitation_callback=accepts(decision=DENY)) as client:
            if redis.is_running:
                await until_heard_by(redis, listeners + 1)
            yield TestReplica(gateway, client)
        group.cancel_scope.cancel()


def heard_by(redis: RedisServer) -> int:
    """How many listen for events."""
    return int(redis.ask("PUBSUB", "NUMSUB", "{goat-mcp}:events").rpartition(":")[2])


async def until_heard_by(redis: RedisServer, count: int) -> None:
    with anyio.fail_after(WAIT_S):
        while heard_by(redis) != count:  # noqa: ASYNC110  # Redis knows it, and tells nobody
            await anyio.sleep(0.02)
