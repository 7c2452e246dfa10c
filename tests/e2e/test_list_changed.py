"""A server that adds a tool: goat-mcp tells its own clients, in each era and over each transport."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import anyio
import pytest
from mcp import Client
from mcp_types import ToolListChangedNotification

from tests.e2e.conftest import UNASKED, ours, upstream_file
from tests.e2e.goat import HttpGoat, Launch, connected, http_goat
from tests.e2e.node_side import Node
from tests.e2e.wire import Wire

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]

NOTICE_TIMEOUT_S = 60
QUIET_S = 1.0
GROWN = "mcp__plain__grown"


@pytest.fixture
def growing(launch: Launch) -> Launch:
    file = upstream_file(launch.folder / "upstreams.json", plain=ours("plain"))
    return replace(launch, options=(*UNASKED, "--upstreams", str(file)))


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, growing: Launch) -> Iterator[Launch | HttpGoat]:
    if request.param == "stdio":
        yield growing
    else:
        with http_goat(growing) as goat:
            yield goat


# CHG-1
async def test_a_handshake_client_is_told(target: Launch | HttpGoat) -> None:
    send, receive = anyio.create_memory_object_stream[None](100)

    async def note(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            send.send_nowait(None)

    async with send, receive, connected(target, "legacy", message_handler=note) as client:
        assert GROWN not in await names(client)

        await client.call_tool("mcp__plain__grow")

        await listed_after_a_notice(client, receive.receive)


# CHG-1
async def test_a_2026_client_is_told_where_it_listens(target: Launch | HttpGoat) -> None:
    async with connected(target, "2026-07-28") as client:
        assert GROWN not in await names(client)

        async with client.listen(tools_list_changed=True) as changes:
            await client.call_tool("mcp__plain__grow")

            await listed_after_a_notice(client, changes.__anext__)


@pytest.mark.parametrize(("client", "era"), [("v2", "legacy"), ("v2", "2026-07-28"), ("v1", "legacy")])
def test_a_typescript_client_is_told(node: Node, target: Launch | HttpGoat, client: str, era: str) -> None:
    known = {"call": "mcp__plain__pid"}  # from then on its tools are in every list
    grow = {"call": "mcp__plain__grow"}
    wait = {"awaitTool": GROWN, "within": NOTICE_TIMEOUT_S}

    session = node.session(client, era, target, [known, {"list": True}, grow, wait])

    _, before, _, after = session["results"]
    assert [tool["name"] for tool in after if tool not in before] == [GROWN]


# CHG-1
def test_a_client_that_has_seen_everything_is_left_in_peace(growing: Launch) -> None:
    with Wire(growing.command, growing.environment, growing.workspace) as wire:
        wire.handshake()
        wire.text("mcp__plain__pid", {})  # from now on its tools are in every list
        listed = wire.request("tools/list")["result"]["tools"]
        wire.text("Bash", {"command": f"sleep {QUIET_S}"})

        assert "mcp__plain__grow" in [tool["name"] for tool in listed]
        assert wire.notices == []


async def listed_after_a_notice(client: Client, next_notice: Callable[[], Awaitable[object]]) -> None:
    """List again after each notice, and only then, until the new tool is there."""
    with anyio.fail_after(NOTICE_TIMEOUT_S):
        while True:
            await next_notice()
            if GROWN in await names(client):
                return


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]
