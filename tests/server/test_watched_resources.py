"""Watching resources of upstreams: real upstream processes of both eras, clients of both eras, what each is told."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.subscriptions import Subscription
from mcp.shared.exceptions import MCPError

from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from tests.free_port import free_port
from tests.server.handlers.test_resources import Told, subscribe, unsubscribe
from tests.server.test_resource_requests import START_S, serving, uris
from tests.upstreams.fleet import server, serving_at, warm

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.matrix,
]
LISTED = [{"name": name, "inputSchema": {"type": "object"}} for name in ("touch", "subscribed", "die", "drop", "grow")]
WAIT_S = 60
T = TypeVar("T")
upstream_eras = pytest.mark.parametrize("era", ["handshake", "stateless"])


@dataclass
class Watchers:
    """A client of each era, of one gateway."""

    old: Client
    new: Client
    told: Told
    """What the handshake client was told."""
    served: Gateway

    async def subscribe(self, uri: str) -> None:
        await subscribe(self.old, uri)

    async def unsubscribe(self, uri: str) -> None:
        await unsubscribe(self.old, uri)

    async def touch(self, uri: str) -> None:
        await self.old.call_tool("mcp__a__touch", {"uri": uri})

    async def heard(self) -> list[str]:
        """What the upstream process that is there now was asked for, in order."""
        (block,) = (await self.old.call_tool("mcp__a__subscribed")).content
        assert isinstance(block, types.TextContent)
        return block.text.split()

    async def until_heard(self, holds: Callable[[list[str]], bool]) -> list[str]:
        return await until(self.heard, holds)


async def until(look: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
    with anyio.fail_after(WAIT_S):
        while not holds(found := await look()):  # noqa: ASYNC110  # it happens in another process
            await anyio.sleep(0.05)
        return found


@asynccontextmanager
async def watchers(folder: Path, entry: dict[str, Any], era: str) -> AsyncGenerator[Watchers]:
    entries = {"a": entry}
    if era == "handshake":
        # What spoke it the last time is greeted so (ERA-2).
        warm(folder, entries, {"a": LISTED}, "2025-11-25")
    served = serving(folder, entries)
    adapter = Adapter(served, "stdio")
    told = Told()
    async with served.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with (
            Client(adapter.server, mode="legacy", message_handler=told) as old,
            Client(adapter.server, mode="2026-07-28") as new,
        ):
            await served.upstreams.all_offers(START_S)
            assert served.upstreams.status()[0].version == ("2025-11-25" if era == "handshake" else "2026-07-28")
            yield Watchers(old, new, told, served)
        group.cancel_scope.cancel()


async def next_uri(changes: Subscription) -> str:
    with anyio.fail_after(WAIT_S):
        change = await anext(changes)
    return change.uri  # type: ignore[union-attr]  # nothing else was asked for


@asynccontextmanager
async def shelf_over(transport: str) -> AsyncGenerator[dict[str, Any]]:
    if transport == "stdio":
        yield server("shelf.py", "a")
        return
    port = free_port()
    with serving_at(port, "shelf.py", "http", port, "a"):
        yield {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}


# CHG-3, CHG-4
@upstream_eras
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_an_upstream_is_asked_once_for_all_who_watch_and_told_when_nobody_does(
    tmp_path: Path, transport: str, era: str
) -> None:
    asked = ["a://one", "a://two", "z://none", "goat://todos", "goat://nothing"]
    async with shelf_over(transport) as entry, watchers(tmp_path, entry, era) as both:
        await both.subscribe("a://one")
        async with both.new.listen(resource_subscriptions=asked) as changes:
            honoured = changes.honored.resource_subscriptions
            await both.touch("a://one")
            by_stream = await next_uri(changes)
            await both.told.wait_for("a://one")
            await both.unsubscribe("a://one")
            await both.touch("a://one")
            still = await next_uri(changes)
            told = list(both.told.uris)
            while_watched = await both.heard()
        gone = "-a://one" if era == "handshake" else "listen:"
        afterwards = await both.until_heard(lambda heard: heard[-1:] == [gone])

    assert honoured == ["a://one", "goat://todos"]
    assert (by_stream, still, told) == ("a://one", "a://one", ["a://one"])
    if era == "handshake":
        assert (while_watched, afterwards) == (["+a://one"], ["+a://one", "-a://one"])
    else:
        assert while_watched[-1] == "listen:a://one"


# CHG-4, CHG-3
@upstream_eras
async def test_one_who_changes_his_mind_is_unsubscribed_upstream(tmp_path: Path, era: str) -> None:
    async with watchers(tmp_path, server("shelf.py", "a"), era) as both:
        heard: list[str] = []
        for _ in range(2):
            before = len(heard)
            await both.subscribe("a://one")
            await both.unsubscribe("a://one")
            heard = await both.until_heard(lambda now, n=before: now[n + 1 :][-1:] in (["-a://one"], ["listen:"]))
        await both.subscribe("a://one")
        with anyio.fail_after(WAIT_S):
            while "a://one" not in both.told.uris:
                await both.touch("a://one")

    once = ["+a://one", "-a://one"] if era == "handshake" else ["listen:a://one", "listen:"]
    assert heard == [*([] if era == "handshake" else ["listen:"]), *once, *once]


# CHG-4
@upstream_eras
async def test_who_is_not_told_by_the_upstream_hears_so_when_subscribing(tmp_path: Path, era: str) -> None:
    async with watchers(tmp_path, server("shelf.py", "a"), era) as both:
        refused: list[tuple[int, str]] = []
        for uri in ("a://two", "z://none"):
            with pytest.raises(MCPError) as error:
                await both.subscribe(uri)
            refused.append((error.value.error.code, error.value.error.message))

    theirs = {
        "handshake": (-32099, "not this one"),
        "stateless": (-32603, "upstream a does not tell of changes of a://two"),
    }
    assert refused == [theirs[era], (-32002, "resource not found: z://none")]


# LIF-5, CHG-2
@upstream_eras
async def test_a_new_process_of_the_upstream_is_asked_again_for_what_is_watched(tmp_path: Path, era: str) -> None:
    only = ("new_only",) if era == "stateless" else ()
    async with watchers(tmp_path, server("shelf.py", "a", *only), era) as both:
        await both.subscribe("a://one")
        await both.old.call_tool("mcp__a__die")
        await both.told.wait_for("a://one")  # whatever happened to it meanwhile
        wanted = "+a://one" if era == "handshake" else "listen:a://one"
        await both.until_heard(lambda heard: wanted in heard)
        both.told.uris.clear()

        await both.touch("a://one")
        await both.told.wait_for("a://one")


# CHG-4, ERA-2b
async def test_a_new_process_of_a_server_of_both_eras_is_asked_in_the_era_of_who_watches(tmp_path: Path) -> None:
    async with watchers(tmp_path, server("shelf.py", "a"), "stateless") as both:
        await both.subscribe("a://one")
        await both.old.call_tool("mcp__a__die")
        await both.told.wait_for("a://one")
        heard = await both.until_heard(lambda heard: "+a://one" in heard)
        both.told.uris.clear()

        await both.touch("a://one")
        await both.told.wait_for("a://one")

    assert heard == ["+a://one"]


# CHG-2
async def test_a_lost_change_stream_is_reopened_and_the_lists_are_read_again(tmp_path: Path) -> None:
    async with watchers(tmp_path, server("shelf.py", "a", "new_only"), "stateless") as both:
        before = await uris(both.new)
        async with both.new.listen(resources_list_changed=True) as changes:
            await both.old.call_tool("mcp__a__drop")
            with anyio.fail_after(WAIT_S):
                change = await anext(changes)
        after = await uris(both.new)
        heard = await both.heard()

    assert type(change).__name__ == "ResourcesListChanged"
    assert (before, after) == (["a://one", "a://two"], ["a://one", "a://two", "a://extra0"])
    assert heard == ["listen:", "listen:"]


# CHG-4
async def test_who_watches_again_just_as_the_last_one_leaves_is_told_all_the_same(tmp_path: Path) -> None:
    async with watchers(tmp_path, server("shelf.py", "a"), "stateless") as both:
        for _ in range(5):
            async with both.new.listen(resource_subscriptions=["a://one"]):
                pass
            await both.subscribe("a://one")
            both.told.uris.clear()
            await both.touch("a://one")
            await both.told.wait_for("a://one")
            await both.unsubscribe("a://one")
