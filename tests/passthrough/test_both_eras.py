"""A server that speaks both eras, and a client of each at the same time: through one goat-mcp, and through two windows
that share its process (`share: true`). ERA-2b, WSP-1, FLW-1, FLW-2, CHG-1
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest

from tests.conformance.fixture.one_era import HANDSHAKE, STATELESS
from tests.e2e.goat import http_goat
from tests.passthrough.checks import CHECKS
from tests.passthrough.client import Seen, connected
from tests.passthrough.gateways import goat_launch
from tests.passthrough.upstream import BOTH
from tests.upstreams.sharing.brokers import Brokers, private_runtime

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]
ERAS = (HANDSHAKE, STATELESS)
every_row = pytest.mark.parametrize("row", ["tools", "progress", "cancel", "list changes"])


@pytest.fixture
def brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Brokers]:
    with private_runtime(tmp_path, monkeypatch) as ours:
        ours.start()
        yield ours


async def passes(row: str, clients: list[Seen]) -> None:
    """For all of them at once, and again once each has a connection."""
    for _ in range(2):
        async with anyio.create_task_group() as group:
            for client in clients:
                group.start_soon(CHECKS[row], client)


async def sharing(client: Seen) -> dict[str, Any]:
    """What the status of its gateway says of the server's process."""
    (content,) = (await client.client.read_resource("goat://status")).contents
    assert isinstance(content, types.TextResourceContents)
    return json.loads(content.text)["upstreams"][0]["sharing"]


@every_row
async def test_clients_of_both_eras_of_one_gateway_see_what_the_server_does(tmp_path: Path, row: str) -> None:
    with http_goat(goat_launch(tmp_path / "goat", BOTH), needs_token=False) as goat:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(connected(goat.url, era)) for era in ERAS]
            await passes(row, clients)


@pytest.mark.linux_only("a socket must say who is at its other end")
@every_row
async def test_clients_of_both_eras_see_what_a_server_does_that_their_windows_share(
    brokers: Brokers, tmp_path: Path, row: str
) -> None:
    windows = [goat_launch(tmp_path / f"window {number}", BOTH, share=True) for number in range(4)]
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(connected(window.stdio(), era))
            for window, era in zip(windows, ERAS * 2, strict=True)
        ]
        await passes(row, clients)
        shown = [await sharing(client) for client in clients]

    assert [one["is_shared"] for one in shown] == [True] * 4
    assert {one["broker_pid"] for one in shown} == {brokers.pid}
    assert len({one["pid"] for one in shown}) == 1
