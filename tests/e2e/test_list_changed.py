"""A server that adds a tool: goat-mcp tells its own clients, in each era and over each transport."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp_types import ToolListChangedNotification

from tests.e2e.conftest import UNASKED, ours, upstream_file
from tests.e2e.goat import HttpGoat, Launch, connected, http_goat
from tests.e2e.node_side import Node

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

NOTICE_TIMEOUT_S = 10


@pytest.fixture
def growing(launch: Launch) -> Launch:
    file = upstream_file(launch.folder / "upstreams.json", plain=ours("plain"))
    return Launch(launch.folder, launch.workspace, (*UNASKED, "--upstreams", str(file)))


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, growing: Launch) -> Any:
    if request.param == "stdio":
        yield growing
    else:
        with http_goat(growing) as goat:
            yield goat


async def test_a_handshake_client_is_told(target: Launch | HttpGoat) -> None:
    told = anyio.Event()

    async def note(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            told.set()

    async with connected(target, "legacy", message_handler=note) as client:
        assert "mcp__plain__grown" not in await names(client)

        await client.call_tool("mcp__plain__grow")

        with anyio.fail_after(NOTICE_TIMEOUT_S):
            await told.wait()
        assert "mcp__plain__grown" in await names(client)


async def test_a_2026_client_is_told_where_it_listens(target: Launch | HttpGoat) -> None:
    async with connected(target, "2026-07-28") as client:
        assert "mcp__plain__grown" not in await names(client)

        async with client.listen(tools_list_changed=True) as changes:
            await client.call_tool("mcp__plain__grow")
            with anyio.fail_after(NOTICE_TIMEOUT_S):
                await anext(aiter(changes))

        assert "mcp__plain__grown" in await names(client)


@pytest.mark.parametrize(("client", "era"), [("v2", "legacy"), ("v2", "2026-07-28"), ("v1", "legacy")])
def test_a_typescript_client_is_told(node: Node, target: Launch | HttpGoat, client: str, era: str) -> None:
    grow = {"call": "mcp__plain__grow"}

    session = node.session(
        client, era, target, [{"list": True}, grow, {"awaitListChanged": NOTICE_TIMEOUT_S}, {"list": True}]
    )

    before, _, told, after = session["results"]
    assert told["listChanges"] >= 1
    assert [tool["name"] for tool in after if tool not in before] == ["mcp__plain__grown"]


async def names(client: Any) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]
