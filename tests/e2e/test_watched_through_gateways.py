"""Watching what an upstream has, through one gateway and two, where no run before has met it (WSP-1, CHN-1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import TextContent

from tests.e2e.goat import Launch, connected
from tests.e2e.test_gateway_chains import as_entry, expect_handshake, launch, until_known
from tests.server.handlers.test_resources import Told
from tests.upstreams.fleet import server

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.e2e,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
WAIT_S = 60


async def answering(*_: Any) -> Any:
    """What makes a client one that can be asked; nobody asks it here."""
    raise AssertionError("nobody asks here")


CAN: Mapping[str, Any] = {"elicitation_callback": answering, "sampling_callback": answering}


def chain(folder: Path, gateways: int, era: str) -> tuple[Launch, str]:
    """The outermost, and what the names of the upstream's tools begin with there."""
    inner = launch(folder, "inner", a=server("shelf.py", "a"))
    if era == "handshake":
        expect_handshake(inner, "a")
    return (inner, "mcp__a__") if gateways == 1 else (launch(folder, "outer", g=as_entry(inner)), "mcp__g__mcp__a__")


async def until_listed(client: Client, uri: str) -> None:
    with anyio.fail_after(WAIT_S):
        while uri not in {str(one.uri) for one in (await client.list_resources()).resources}:  # noqa: ASYNC110  # far away
            await anyio.sleep(0.1)


# CHG-1, CHG-4
@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.parametrize("can", [{}, CAN], ids=["asks nobody", "can be asked"])
@pytest.mark.parametrize("gateways", [1, 2])
async def test_who_watches_and_then_calls_hears_of_what_its_calls_change(
    tmp_path: Path, gateways: int, can: Mapping[str, Any], era: str
) -> None:
    outer, prefix = chain(tmp_path, gateways, era)
    told = Told()
    async with connected(outer, "legacy", message_handler=told, **can) as client:
        await client.list_tools()
        await until_listed(client, "a://one")
        # It is the older era's way, and this client is of that.
        await client.session.subscribe_resource("a://one")  # pyright: ignore[reportDeprecated]
        (subscribed,) = (await until_known(client, f"{prefix}subscribed")).content
        told.uris.clear()
        await client.call_tool(f"{prefix}touch", {"uri": "a://one"})
        await told.wait_for("a://one")
        await client.call_tool(f"{prefix}grow", {})
        await until_listed(client, "a://extra0")

    assert isinstance(subscribed, TextContent)
    assert "a://one" in subscribed.text
