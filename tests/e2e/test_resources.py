"""An observer watches todos and tasks of a real goat-mcp: it is told of a change and reads the new state."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceUpdatedNotification, TextResourceContents

from tests.e2e.conftest import UNASKED
from tests.e2e.goat import HttpGoat, Launch, connected, http_goat
from tests.server.handlers.test_resources import subscribe

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.e2e,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

NOTICE_TIMEOUT_S = 60
TODOS = [
    {"content": "Look", "status": "completed", "activeForm": "Looking"},
    {"content": "Fix", "status": "in_progress", "activeForm": "Fixing"},
]
both_eras = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
NextNotice = Callable[[], Awaitable[object]]


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, launch: Launch) -> Iterator[Launch | HttpGoat]:
    unasked = replace(launch, options=UNASKED)
    if request.param == "stdio":
        yield unasked
    else:
        with http_goat(unasked) as goat:
            yield goat


class Observer:
    """A client that watches resources in its era's way."""

    def __init__(self, client: Client, era: str, notices: Any) -> None:
        self.client = client
        self._era = era
        self._notices = notices

    @asynccontextmanager
    async def watching(self, uri: str) -> AsyncGenerator[NextNotice]:
        if self._era == "legacy":
            await subscribe(self.client, uri)
            yield self._notices.receive
        else:
            async with self.client.listen(resource_subscriptions=[uri]) as changes:
                yield changes.__anext__

    async def read(self, uri: str) -> Any:
        (content,) = (await self.client.read_resource(uri)).contents
        assert isinstance(content, TextResourceContents)
        return json.loads(content.text)


@asynccontextmanager
async def observing(target: Launch | HttpGoat, era: str) -> AsyncGenerator[Observer]:
    send, receive = anyio.create_memory_object_stream[str](100)

    async def note(message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            send.send_nowait(message.params.uri)

    async with send, receive, connected(target, era, message_handler=note) as client:
        yield Observer(client, era, receive)


@both_eras
async def test_todos_are_seen_as_they_change_and_outlive_the_server(target: Launch | HttpGoat, era: str) -> None:
    async with observing(target, era) as observer, observer.watching("goat://todos") as next_notice:
        before = await observer.read("goat://todos")
        await observer.client.call_tool("TodoWrite", {"todos": TODOS})
        with anyio.fail_after(NOTICE_TIMEOUT_S):
            await next_notice()
        after = await observer.read("goat://todos")

    async with observing(target, era) as later:  # on stdio another process, over HTTP another connection
        kept = await later.read("goat://todos")

    assert (before, after, kept) == ({"todos": []}, {"todos": TODOS}, {"todos": TODOS})


@both_eras
async def test_a_change_by_another_process_is_noticed(launch: Launch, era: str) -> None:
    target = replace(launch, options=UNASKED)

    async with observing(target, era) as observer, observer.watching("goat://todos") as next_notice:
        async with connected(target, era) as other:
            await other.call_tool("TodoWrite", {"todos": TODOS})
        with anyio.fail_after(NOTICE_TIMEOUT_S):
            await next_notice()
        seen = await observer.read("goat://todos")

    assert seen == {"todos": TODOS}


@both_eras
async def test_a_background_command_is_watched_to_its_end(target: Launch | HttpGoat, era: str, launch: Launch) -> None:
    go = launch.workspace / "go"
    command = f"until [ -e '{go}' ]; do sleep 0.1; done; echo done waiting"

    async with observing(target, era) as observer, observer.watching("goat://tasks") as next_notice:
        await observer.client.call_tool("Bash", {"command": command, "run_in_background": True})
        with anyio.fail_after(NOTICE_TIMEOUT_S):
            await next_notice()
        (running,) = (await observer.read("goat://tasks"))["tasks"]
        go.touch()
        with anyio.fail_after(NOTICE_TIMEOUT_S):
            await next_notice()
        ended = await observer.read(running["uri"])

    assert (running["title"], running["status"]) == (command, "running")
    assert (ended["status"], ended["exit_code"], ended["output"]) == ("completed", 0, "done waiting")


@both_eras
async def test_what_is_not_there_is_an_error_of_the_era(target: Launch | HttpGoat, era: str) -> None:
    async with observing(target, era) as observer:
        with pytest.raises(MCPError) as refused:
            await observer.client.read_resource("goat://tasks/nope")

    assert refused.value.error.code == (-32002 if era == "legacy" else -32602)
    assert refused.value.error.data == {"uri": "goat://tasks/nope"}


@both_eras
async def test_a_setting_lasts_as_long_as_its_connection(target: Launch | HttpGoat, era: str) -> None:
    """Clients of 2026-07-28 have no connection over HTTP: there it lasts for the client of that name."""
    lasting = era == "2026-07-28" and isinstance(target, HttpGoat)
    setting = {"setting": "search.glob_limit"}

    async with connected(target, era) as client:
        await client.call_tool("Config", {**setting, "value": 7})
        now = (await client.call_tool("Config", setting)).structured_content
    async with connected(target, era) as client:
        later = (await client.call_tool("Config", setting)).structured_content

    kept = {**setting, "value": 7, "previous": None, "source": "session"}
    assert now == kept
    assert later == (kept if lasting else {**setting, "value": 100, "previous": None, "source": "default"})
