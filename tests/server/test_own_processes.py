"""Clients that an upstream may ask have a process of it each: what one lists and says reaches its client alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from tests.e2e.goat import REPOSITORY
from tests.quick_start import module_command
from tests.server.handlers.test_resources import subscribe
from tests.server.test_resource_requests import START_S, serving, uris
from tests.upstreams.fleet import warm

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.matrix,
]
LISTED = [{"name": name, "inputSchema": {"type": "object"}} for name in ("touch", "subscribed", "grow", "die", "drop")]
WAIT_S = 60
T = TypeVar("T")
client_eras = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


async def answering(context: Any, params: Any) -> Any:
    """What makes a client one that can be asked; nobody asks it here."""
    raise AssertionError("nobody asks here")


@dataclass
class Told:
    """What a handshake client was told, in order."""

    notices: list[str] = field(default_factory=list[str])

    async def __call__(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.notices.append(str(message.params.uri))
        elif isinstance(message, types.ToolListChangedNotification):
            self.notices.append("tools")
        elif isinstance(message, types.PromptListChangedNotification):
            self.notices.append("prompts")
        elif isinstance(message, types.ResourceListChangedNotification):
            self.notices.append("resources")

    async def until(self, *wanted: str) -> None:
        await until(self._notices, lambda heard: set(wanted) <= set(heard))

    async def _notices(self) -> list[str]:
        return self.notices


async def until(look: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
    with anyio.fail_after(WAIT_S):
        while not holds(found := await look()):  # noqa: ASYNC110  # it happens in another process
            await anyio.sleep(0.05)
        return found


@dataclass
class Visitor:
    client: Client
    told: Told

    async def call(self, tool: str, **arguments: Any) -> str:
        result = await self.client.call_tool(f"mcp__a__{tool}", arguments)
        assert not result.is_error, result
        return "".join(block.text for block in result.content if isinstance(block, types.TextContent))

    async def uris(self) -> list[str]:
        return await uris(self.client)

    async def prompts(self) -> list[str]:
        return [one.name for one in (await self.client.list_prompts(cache_mode="bypass")).prompts]

    async def tools(self) -> list[str]:
        listed = (await self.client.list_tools(cache_mode="bypass")).tools
        return [one.name.removeprefix("mcp__a__") for one in listed if one.name.startswith("mcp__a__")]


@asynccontextmanager
async def two_clients(
    folder: Path, mode: str = "legacy", **settings: Any
) -> AsyncGenerator[tuple[Visitor, Visitor, Gateway]]:
    """Two sessions before one upstream of the handshake era, each of which has called: each has its process."""
    program, *arguments = module_command("tests.upstreams.servers.shelf", "a", "tooled", "old_only")
    entries = {"a": {"command": program, "args": arguments, "env": {"PYTHONPATH": str(REPOSITORY)}}}
    warm(folder, entries, {"a": LISTED}, "2025-11-25")
    served = serving(folder, entries, mode="bypassPermissions", **settings)
    adapter = Adapter(served, "http")
    async with served.running(), anyio.create_task_group() as group, AsyncExitStack() as stack:
        await group.start(adapter.run)
        visitors: list[Visitor] = []
        for name in ("first", "second"):
            told = Told()
            client = Client(
                adapter.server,
                mode=mode,
                message_handler=told,
                elicitation_callback=answering,
                client_info=types.Implementation(name=name, version="1"),
            )
            visitors.append(Visitor(await stack.enter_async_context(client), told))
        await served.upstreams.all_offers(START_S)
        for visitor in visitors:
            await visitor.call("subscribed")
            await visitor.uris()
            await visitor.tools()
            await visitor.prompts()
        yield visitors[0], visitors[1], served
        group.cancel_scope.cancel()


# CHG-1
@client_eras
async def test_what_a_clients_process_lists_anew_is_seen_and_announced_to_that_client_alone(
    tmp_path: Path, mode: str
) -> None:
    async with two_clients(tmp_path, mode) as (first, second, _):
        before = (await second.uris(), await second.prompts(), await second.tools())
        await second.call("grow")
        grown = await until(second.uris, lambda listed: "a://extra0" in listed)
        prompts = await until(second.prompts, lambda listed: "mcp__a__extra0" in listed)
        tools = await until(second.tools, lambda listed: "extra0" in listed)
        called = await second.client.call_tool("mcp__a__extra0", {})
        if mode == "legacy":
            await second.told.until("tools", "prompts", "resources")
        others = (await first.uris(), await first.prompts(), await first.tools())
        with pytest.raises(MCPError) as refused:
            await first.client.call_tool("mcp__a__extra0", {})

    assert others == before
    assert grown == [*before[0], "a://extra0"]
    assert prompts == [*before[1], "mcp__a__extra0"]
    assert tools == [*before[2], "extra0"]
    assert not called.is_error
    assert "tool not found" in str(refused.value)
    assert first.told.notices == []


# CHG-1
async def test_a_client_keeps_the_list_of_its_process_when_that_of_the_first_changes(tmp_path: Path) -> None:
    async with two_clients(tmp_path) as (first, second, _):
        before = await second.tools()
        await first.call("grow")
        grown = await until(first.tools, lambda listed: "extra0" in listed)
        seen = await second.tools()
        await second.call("grow")
        same = await until(second.tools, lambda listed: "extra0" in listed)

    assert seen == before
    assert same == grown


# CHG-1
async def test_who_has_no_process_any_more_sees_what_all_see(tmp_path: Path) -> None:
    async with two_clients(tmp_path) as (_, second, served):
        before = await second.tools()
        await second.call("grow")
        await until(second.tools, lambda listed: "extra0" in listed)
        (key,) = served.own_lists.sessions
        served.upstreams.session_ended(key)
        after = await second.tools()

    assert after == before
    assert not served.own_lists.sessions


# CHG-4
async def test_what_a_client_watches_is_watched_in_its_own_process_and_told_to_it_alone(tmp_path: Path) -> None:
    async with two_clients(tmp_path) as (first, second, _):
        for visitor in (first, second):
            await subscribe(visitor.client, "a://one")
        heard = [await visitor.call("subscribed") for visitor in (first, second)]
        await second.call("touch", uri="a://one")
        await second.told.until("a://one")
        of_second = (list(first.told.notices), list(second.told.notices))
        await first.call("touch", uri="a://one")
        await first.told.until("a://one")

    assert heard == ["+a://one", "+a://one"]
    assert of_second == ([], ["a://one"])
    assert (first.told.notices, second.told.notices) == (["a://one"], ["a://one"])


# CHG-4
async def test_a_stateless_client_hears_on_its_stream_of_what_its_own_process_says(tmp_path: Path) -> None:
    async with (
        two_clients(tmp_path, "2026-07-28") as (first, second, _),
        first.client.listen(resource_subscriptions=["a://one"]) as of_first,
        second.client.listen(resource_subscriptions=["a://one"]) as of_second,
    ):
        await second.call("touch", uri="a://one")
        with anyio.fail_after(WAIT_S):
            change = await anext(of_second)
        with anyio.move_on_after(0.5) as silence:
            await anext(of_first)

    assert getattr(change, "uri", "") == "a://one"
    assert silence.cancelled_caught


# CHG-4, LIF-5
async def test_a_new_process_of_a_client_is_asked_again_for_what_that_client_watches(tmp_path: Path) -> None:
    async with two_clients(tmp_path) as (first, second, _):
        await subscribe(second.client, "a://one")
        await second.client.call_tool("mcp__a__die", {})
        await until(lambda: second.call("subscribed"), lambda heard: heard == "+a://one")
        others = await first.call("subscribed")

    assert others == ""
    assert first.told.notices == []
