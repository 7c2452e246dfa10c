"""Servers that work in the client's folder, where goat-mcp is told of that only with the first call. WSP-2, ERA-6."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp_types import ToolListChangedNotification

from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import Launch, connected
from tests.e2e.upstream_launch import ERAS, child
from tests.e2e.wire import text_of

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]

NOTICE_TIMEOUT_S = 30.0
NextNotice = Callable[[], Awaitable[None]]
Roots = Callable[[Any], Awaitable[types.ListRootsResult]]


@asynccontextmanager
async def told_of_changes(launch: Launch, era: str, roots: Roots) -> AsyncGenerator[tuple[Client, NextNotice]]:
    """A client of this era with a folder, and how it waits until it hears that the tools have changed."""
    send, receive = anyio.create_memory_object_stream[None](1000)

    async def note(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            send.send_nowait(None)

    async with send, receive, connected(launch, era, message_handler=note, list_roots_callback=roots) as client:
        if era == ERAS["old"]:
            yield client, receive.receive
            return
        async with client.listen(tools_list_changed=True) as changes:

            async def change() -> None:
                await anext(changes)

            yield client, change


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def listed(client: Client, change: NextNotice, *wanted: str) -> set[str]:
    """List, and again after each notice and only then, until these are there."""
    with anyio.fail_after(NOTICE_TIMEOUT_S):
        while not (found := await names(client)) >= {*wanted}:
            await change()
    return found


async def folder(client: Client, server: str) -> str:
    """Where it works; where it is still starting, as it is told to, the client calls again."""
    with anyio.fail_after(NOTICE_TIMEOUT_S):
        while True:
            result = await client.call_tool(f"mcp__{server}__folder", {})
            said = text_of(result.model_dump(by_alias=True))
            if not (result.is_error and "still starting" in said):
                return said.split(" ")[0]


def launch_of(tmp_path: Path, **entries: Any) -> Launch:
    file = upstream_file(tmp_path / "upstreams.json", **entries)
    start = fill(tmp_path / "start").resolve()
    return Launch(tmp_path, start, (*UNASKED, "--upstreams", str(file)), names_workspace=False)


def naming(*folders: Path) -> Roots:
    async def tells(ctx: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": one.as_uri()}) for one in folders])

    return tells


@pytest.mark.parametrize(("start", "upstream_era"), [("lazy", "old"), ("eager", "new")])
@pytest.mark.parametrize("era", ERAS.values())
async def test_servers_are_started_in_the_clients_folder_as_soon_as_it_is_known(
    tmp_path: Path, era: str, start: str, upstream_era: str
) -> None:
    project = fill(tmp_path / "project").resolve()
    entries = {
        "placed": child("asking", ERAS["old"], cwd="${workspace}", start=start),
        "anywhere": child("asking", ERAS[upstream_era], start=start),
        "fixed": child("asking", ERAS["old"], cwd=str(tmp_path), start=start),
    }

    async with told_of_changes(launch_of(tmp_path, **entries), era, naming(project)) as (client, change):
        before = await listed(client, change, "mcp__anywhere__folder", "mcp__fixed__folder")
        await client.call_tool("Glob", {"pattern": "*.md"})
        await listed(client, change, "mcp__placed__folder")
        worked_in = {server: await folder(client, server) for server in entries}

    assert "mcp__placed__folder" not in before
    assert worked_in == {"placed": str(project), "anywhere": str(project), "fixed": str(tmp_path)}


@pytest.mark.parametrize("era", ERAS.values())
async def test_the_very_call_that_brings_the_folder_finds_the_server_that_waited_for_it(
    tmp_path: Path, era: str
) -> None:
    project = fill(tmp_path / "project").resolve()
    launch = launch_of(tmp_path, placed=child("asking", ERAS["old"], cwd="${workspace}"))

    async with connected(launch, era, list_roots_callback=naming(project)) as client:
        before = await names(client)
        worked_in = await folder(client, "placed")

    assert "mcp__placed__folder" not in before
    assert worked_in == str(project)
