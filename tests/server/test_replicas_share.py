"""Replicas with one Redis: what one changes the other has, its clients hear of it, and no plain call asks Redis."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError

from goat_mcp.calls.permissions.approval import ALLOW_ONCE
from goat_mcp.core.side_effect import SideEffect
from tests.redis_server import RedisServer, redis_server
from tests.server.shared_replicas import WAIT_S, TestReplica, replica, until_heard_by
from tests.tool_doubles import FakeTool, fake

pytestmark = pytest.mark.anyio
TODO = {"content": "write", "status": "pending", "activeForm": "writing"}
YES = types.ElicitResult(action="accept", content={"decision": ALLOW_ONCE})


@pytest.fixture
def redis(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


def changing() -> FakeTool:
    return fake("mcp__it__changes", SideEffect.MUTATING)


@asynccontextmanager
async def two(folder: Path, redis: RedisServer, *tools: FakeTool) -> AsyncGenerator[tuple[TestReplica, TestReplica]]:
    here, there = tools or (changing(), changing())
    allowed = {"allow": ["Config"]}
    async with (
        replica(folder, "a", redis, here, permissions=allowed) as a,
        replica(folder, "b", redis, there, permissions=allowed) as b,
    ):
        yield a, b


async def ask(client: Client, **arguments: Any) -> types.InputRequiredResult:
    asked = await client.session.call_tool("mcp__it__changes", arguments, allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult)
    return asked


async def answer(
    client: Client, asked: types.InputRequiredResult, **arguments: Any
) -> types.CallToolResult | types.InputRequiredResult:
    (key,) = asked.input_requests or {}
    return await client.session.call_tool(
        "mcp__it__changes",
        arguments,
        input_responses={key: YES},
        request_state=asked.request_state,
        allow_input_required=True,
    )


async def test_todos_are_the_same_at_both_and_a_watcher_at_the_other_hears_of_a_change(
    tmp_path: Path, redis: RedisServer
) -> None:
    async with two(tmp_path, redis) as (a, b):
        async with b.client.listen(resource_subscriptions=["goat://todos"]) as changes:
            await a.client.call_tool("TodoWrite", {"todos": [TODO]})
            with anyio.fail_after(WAIT_S):
                assert await anext(changes) == ResourceUpdated("goat://todos")

        read = await b.client.read_resource("goat://todos")

    assert "writing" in getattr(read.contents[0], "text", "")


async def test_clients_of_the_other_hear_that_a_list_has_changed(tmp_path: Path, redis: RedisServer) -> None:
    async with two(tmp_path, redis) as (a, b):
        for one in (a, b):
            await one.client.list_tools()
        async with b.client.listen(tools_list_changed=True) as changes:
            a.gateway.registry.register(fake("mcp__it__new"))
            with anyio.fail_after(WAIT_S):
                assert await anext(changes) == ToolsListChanged()


async def test_a_setting_that_a_session_changes_holds_at_the_other(tmp_path: Path, redis: RedisServer) -> None:
    async def max_chars(one: TestReplica) -> str:
        result = await one.client.call_tool("Config", {"setting": "output.max_chars"})
        return str(result.content)

    async with two(tmp_path, redis) as (a, b):
        assert "30000" in await max_chars(b)  # it knows the session by now

        await a.client.call_tool("Config", {"setting": "output.max_chars", "value": 4321})

        with anyio.fail_after(WAIT_S):
            while "4321" not in await max_chars(b):  # noqa: ASYNC110  # an event of another replica says so
                await anyio.sleep(0.02)


async def test_an_approval_that_was_asked_for_at_one_is_taken_by_the_other_once(
    tmp_path: Path, redis: RedisServer
) -> None:
    here, there = changing(), changing()
    async with two(tmp_path, redis, here, there) as (a, b):
        asked = await ask(a.client, path="x")

        done = await answer(b.client, asked, path="x")

        assert isinstance(done, types.CallToolResult) and not done.is_error
        for again in (a, b):
            with pytest.raises(MCPError, match="answered before"):
                await answer(again.client, asked, path="x")
    assert (here.calls, there.calls) == ([], [{"path": "x"}])


async def test_plain_calls_send_nothing_to_redis(tmp_path: Path, redis: RedisServer) -> None:
    (tmp_path / "file.txt").write_text("text\n")
    read = {"file_path": str(tmp_path / "file.txt")}
    async with two(tmp_path, redis, fake("mcp__it__reads"), changing()) as (a, _):
        for name, arguments in (("mcp__it__reads", {}), ("Read", read)):
            await a.client.call_tool(name, arguments)  # the settings of the session are read once
        before = redis.commands()

        for _ in range(100):
            await a.client.call_tool("mcp__it__reads", {})
            await a.client.call_tool("Read", read)

        assert redis.commands() == before


async def test_without_redis_plain_calls_go_on_and_what_counts_once_is_refused_until_it_is_back(
    tmp_path: Path, redis: RedisServer
) -> None:
    here, there = changing(), changing()
    async with two(tmp_path, redis, here, there) as (a, b):
        a.gateway.registry.register(fake("mcp__it__reads"))
        asked = await ask(a.client, path="before")
        redis.stop()

        for _ in range(20):
            assert not (await a.client.call_tool("mcp__it__reads", {})).is_error
        todos = await a.client.call_tool("TodoWrite", {"todos": [TODO]})
        assert todos.is_error and "shared state" in str(todos.content)
        refused = [await answer(one.client, asked, path="before") for one in (a, b)]
        refused.append(await a.client.session.call_tool("mcp__it__changes", {}, allow_input_required=True))
        for one in refused:
            assert isinstance(one, types.CallToolResult) and one.is_error and "shared state" in str(one.content)
        assert (here.calls, there.calls) == ([], [])

        redis.start()
        await until_heard_by(redis, 2)  # both listen again, by themselves

        for one in (a, b):
            with pytest.raises(MCPError, match="answered before"):
                await answer(one.client, asked, path="before")
        done = await answer(b.client, await ask(a.client, path="after"), path="after")
        assert isinstance(done, types.CallToolResult) and not done.is_error
        async with b.client.listen(resource_subscriptions=["goat://todos"]) as changes:
            assert not (await a.client.call_tool("TodoWrite", {"todos": [TODO]})).is_error
            with anyio.fail_after(WAIT_S):
                assert await anext(changes) == ResourceUpdated("goat://todos")

    assert (here.calls, there.calls) == ([], [{"path": "after"}])


async def test_a_replica_that_starts_without_redis_serves_plain_calls(tmp_path: Path, redis: RedisServer) -> None:
    redis.stop()
    async with replica(tmp_path, "a", redis, fake("mcp__it__reads")) as alone:
        assert not (await alone.client.call_tool("mcp__it__reads", {})).is_error

        redis.start()
        await until_heard_by(redis, 1)

        assert not (await alone.client.call_tool("TodoWrite", {"todos": [TODO]})).is_error
