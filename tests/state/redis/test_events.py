"""Events between replicas: they arrive at the others, and whatever is lost or broken on the way harms nobody."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from goat_mcp.state.redis.address import parsed_address
from goat_mcp.state.redis.connection import RedisConnection
from goat_mcp.state.redis.events import SharedEvents
from tests.redis_server import RedisServer, redis_server

pytestmark = pytest.mark.anyio
WAIT_S = 60
CHANNEL = "{test}:events"


class Replica:
    """What it heard, in order, and what it warned of."""

    def __init__(self, server: RedisServer) -> None:
        self.redis = RedisConnection(parsed_address(server.url), "test")
        self.warnings: list[str] = []
        self.events = SharedEvents(self.redis, self._warn)
        self.heard: list[Sequence[str]] = []
        self._changed = anyio.Event()
        self.events.listen("plan", self._hear)
        self.events.on_gap(lambda: self._hear(["gap"]))

    def _warn(self, event: str, **fields: Any) -> None:
        self.warnings.append(event)

    def _hear(self, facts: Sequence[str]) -> None:
        self.heard.append(facts)
        self._changed.set()

    async def until_heard(self, count: int) -> None:
        with anyio.fail_after(WAIT_S):
            while len(self.heard) < count:
                self._changed = anyio.Event()
                await self._changed.wait()


@asynccontextmanager
async def running(server: RedisServer, *replicas: Replica) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as group:
        for replica in replicas:
            group.start_soon(replica.events.run)
        await until_listening(server, len(replicas))
        yield
        group.cancel_scope.cancel()
    for replica in replicas:
        await replica.redis.close()


async def until_listening(server: RedisServer, count: int) -> None:
    with anyio.fail_after(WAIT_S):
        while not server.ask("PUBSUB", "NUMSUB", CHANNEL).endswith(f":{count}\r\n"):  # noqa: ASYNC110  # Redis knows
            await anyio.sleep(0.02)


async def test_an_event_reaches_the_others_and_not_its_sender(server: RedisServer) -> None:
    one, other = Replica(server), Replica(server)
    async with running(server, one, other):
        one.events.announce("plan", "a", "b")
        await anyio.to_thread.run_sync(one.events.announce, "plan", "from a thread")
        one.events.announce("of a newer version", "x")
        other.events.announce("plan", "back")

        await other.until_heard(2)
        await one.until_heard(1)

    assert other.heard == [("a", "b"), ("from a thread",)]
    assert one.heard == [("back",)]


async def test_what_no_replica_has_sent_is_left_out(server: RedisServer) -> None:
    replica = Replica(server)
    async with running(server, replica):
        broken = ("no json", "[]", '{"from": 1}', '{"from": "x", "kind": "plan", "facts": [1]}', "[" * 50_000)
        for message in (*broken, json.dumps({"from": "x", "kind": "plan", "facts": ["y" * 70_000]})):
            server.ask("PUBLISH", CHANNEL, message)
        server.ask_bytes(b"PUBLISH", CHANNEL.encode(), b"\xff\xfe")
        server.ask("PUBLISH", CHANNEL, '{"from": "x", "kind": "plan", "facts": ["good"], "more": 1}')
        await replica.until_heard(1)

    assert replica.heard == [("good",)]


async def test_after_a_lost_connection_listeners_learn_of_the_gap_and_hear_again(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        one, other = Replica(server), Replica(server)
        async with running(server, one, other):
            server.stop()
            for number in range(2000):
                one.events.announce("plan", str(number))  # lost, and kept by nobody
            server.start()
            await until_listening(server, 2)
            await other.until_heard(1)
            one.events.announce("plan", "after")

            with anyio.fail_after(WAIT_S):
                while ("after",) not in other.heard:
                    await other.until_heard(len(other.heard) + 1)

    assert other.heard[0] == ["gap"]
    assert other.warnings == ["the shared state is out of reach"]


async def test_a_listener_that_fails_takes_nobody_elses_event(server: RedisServer) -> None:
    one, other = Replica(server), Replica(server)
    hear = other.heard.append

    def fail(facts: Sequence[str]) -> None:
        raise ValueError("no")

    other.events.listen("mixed", fail)
    other.events.listen("mixed", lambda facts: (hear(facts), other.events.announce("plan", "heard"))[0])
    async with running(server, one, other):
        one.events.announce("mixed", "x")
        await one.until_heard(1)

    assert other.heard == [("x",)]
    assert other.warnings == ["an event was not handled"]
