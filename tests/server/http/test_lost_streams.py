"""A client that lost a stream of the handshake era comes back with `Last-Event-ID` and gets the rest, once."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.server.streamable_http import EventMessage

from goat_mcp.core.context import ToolContext
from goat_mcp.server.http import stream_events
from goat_mcp.server.http.stream_events import SessionEvents, StreamEvents
from tests.server.asking import AskingTool
from tests.server.http.test_fast_path import OTHERS, WAIT_S, Http, served
from tests.tool_doubles import fake

pytestmark = pytest.mark.anyio
both_ways = pytest.mark.parametrize("short", [True, False], ids=["fast path", "SDK"])


@dataclass
class Event:
    id: str
    data: Any
    retry: str


@asynccontextmanager
async def stream(
    client: Http, message: Any = None, last_event_id: str = "", **headers: str
) -> AsyncGenerator[AsyncGenerator[Event]]:
    """The events of a call, or of what is left of a stream."""
    sent = {**client.headers, **headers}
    if last_event_id:
        sent["last-event-id"] = last_event_id
    method = "GET" if message is None else "POST"
    async with client.http.stream(method, client.url, json=message, headers=sent, timeout=WAIT_S) as response:
        assert response.status_code == 200, response.status_code
        assert response.headers["content-type"].startswith("text/event-stream")

        async def events() -> AsyncGenerator[Event]:
            found: dict[str, str] = {}
            async for line in response.aiter_lines():
                name, colon, value = line.partition(":")
                if line and colon and name:
                    found[name] = value.removeprefix(" ")
                elif not line and "data" in found:
                    data = json.loads(found["data"]) if found["data"] else None
                    yield Event(found.get("id", ""), data, found.get("retry", ""))
                    found = {}

        yield events()


def in_steps(steps: list[anyio.Event]) -> AskingTool:
    """Reports its progress before each step, and then waits for it."""

    async def body(ctx: ToolContext) -> str:
        for number, step in enumerate(steps):
            await ctx.progress(number, None, f"step {number}")
            await step.wait()
        return "done"

    return AskingTool(body)


def asks(client: Http) -> dict[str, Any]:
    return client.of_call(7, "Asks", progressToken="p")


@both_ways
async def test_a_stream_begins_with_an_id_and_when_to_come_back(tmp_path: Path, short: bool) -> None:
    steps = [anyio.Event()]
    async with (
        served(tmp_path, "handshake", in_steps(steps), short=short) as client,
        stream(client, asks(client)) as events,
    ):
        first = await anext(events)
        steps[0].set()
        rest = [event async for event in events]

    assert (first.data, first.retry) == (None, "1000") and first.id
    assert all(event.id for event in rest) and rest[-1].data["id"] == 7
    assert len({first.id, *(event.id for event in rest)}) == 1 + len(rest)


@both_ways
async def test_a_client_that_lost_its_stream_gets_the_rest_and_the_answer(tmp_path: Path, short: bool) -> None:
    steps = [anyio.Event(), anyio.Event()]
    rest: list[Event] = []
    with anyio.fail_after(WAIT_S):
        async with served(tmp_path, "handshake", in_steps(steps), short=short) as client:
            async with stream(client, asks(client)) as events:
                seen = await anext(events)
                while seen.data is None:
                    seen = await anext(events)
            steps[0].set()
            async with stream(client, last_event_id=seen.id) as events:
                steps[1].set()
                while not rest or "result" not in rest[-1].data:
                    if (event := await anext(events)).data is not None:
                        rest.append(event)
            assert client.taken == (1 if short else 0)

    assert rest[-1].data["result"]["content"][0]["text"] == "done"
    ids = [int(event.id) for event in (seen, *rest)]
    assert ids == sorted(set(ids))


@both_ways
async def test_an_answer_that_came_while_nobody_listened_is_there_and_ends_the_stream(
    tmp_path: Path, short: bool
) -> None:
    steps = [anyio.Event()]
    async with served(tmp_path, "handshake", in_steps(steps), short=short) as client:
        async with stream(client, asks(client)) as events:
            first = await anext(events)
        steps[0].set()
        await anyio.sleep(0.3)
        with anyio.fail_after(WAIT_S):
            async with stream(client, last_event_id=first.id) as events:
                rest = [event.data async for event in events if event.data is not None]
            async with stream(client, last_event_id=first.id) as events:
                again = [event.data async for event in events if event.data is not None]

    assert rest[-1]["result"]["content"][0]["text"] == "done"
    assert again == rest


@both_ways
async def test_a_call_goes_on_while_its_client_may_come_back_and_ends_when_it_does_not(
    tmp_path: Path, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_events, "COME_BACK_S", 1.0)
    steps, cancelled = [anyio.Event()], anyio.Event()

    async def body(ctx: ToolContext) -> str:
        await ctx.progress(0, None, "began")
        try:
            await steps[0].wait()
        except anyio.get_cancelled_exc_class():
            cancelled.set()
            raise
        return "done"

    with anyio.fail_after(WAIT_S):
        async with served(tmp_path, "handshake", AskingTool(body), short=short) as client:
            async with stream(client, asks(client)) as events:
                first = await anext(events)
            await anyio.sleep(0.5)
            async with stream(client, last_event_id=first.id) as events:
                await anyio.sleep(1.5)
                assert not cancelled.is_set()
                steps[0].set()
                async for event in events:
                    if event.data is not None and "result" in event.data:
                        assert event.data["result"]["content"][0]["text"] == "done"
                        break
            steps[0] = anyio.Event()
            async with stream(client, client.of_call(8, "Asks", progressToken="q")) as events:
                await anext(events)
            await cancelled.wait()


async def test_another_session_or_principal_gets_nothing_of_a_stream(tmp_path: Path) -> None:
    steps = [anyio.Event()]
    async with served(tmp_path, "handshake", in_steps(steps)) as client:
        async with stream(client, asks(client)) as events:
            first = await anext(events)
        steps[0].set()
        await anyio.sleep(0.3)
        other = Http("handshake", client.http, client.adapter, client.url, {})
        await other.open()
        async with stream(other, last_event_id=first.id) as events:
            seen = [event.data async for event in events if event.data is not None]
        stolen = {**client.headers, "last-event-id": first.id, "authorization": f"Bearer {OTHERS}"}
        refused = await client.http.get(client.url, headers=stolen)

    assert seen == []
    assert refused.status_code == 404


@pytest.mark.parametrize("last_event_id", ["999999", "junk", "-1", "1" * 4000])
async def test_an_id_that_nobody_knows_brings_nothing_and_does_no_harm(tmp_path: Path, last_event_id: str) -> None:
    async with served(tmp_path, "handshake", fake("other")) as client:
        async with stream(client, last_event_id=last_event_id) as events:
            assert [event async for event in events if event.data is not None] == []
        assert (await client.call(9, "other"))["id"] == 9


async def test_a_client_of_an_older_version_gets_no_event_without_data(tmp_path: Path) -> None:
    steps = [anyio.Event()]
    steps[0].set()
    async with served(tmp_path, "handshake", in_steps(steps)) as client:
        info = {"name": "raw", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        client.headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
        opened = await client.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        client.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        await client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await client.call("first", "plain")
        async with stream(client, asks(client)) as events:
            seen = [event async for event in events]

    assert all(event.data is not None for event in seen) and seen[-1].data["id"] == 7


def answer(number: int, text: str = "") -> types.JSONRPCResponse:
    return types.JSONRPCResponse(jsonrpc="2.0", id=number, result={"text": text})


async def replayed(events: SessionEvents, last: str) -> tuple[list[Any], str | None]:
    sent: list[Any] = []

    async def send(event: EventMessage) -> None:
        sent.append(event.message)

    return sent, await events.replay(last, send)


async def test_the_oldest_events_are_dropped_and_what_has_a_gap_is_not_sent() -> None:
    store = StreamEvents(max_bytes=10_000, max_session_bytes=3_000)
    one, other = store.new_session(), store.new_session()
    first = one.keep("1", None)
    kept = [one.keep("1", answer(number, "x" * 500)) for number in range(20)]

    assert await replayed(one, first) == ([], None)
    assert await replayed(one, kept[-1]) == ([], None)
    begin = one.keep("2", None)
    one.keep("2", answer(2))
    assert [message.id for message in (await replayed(one, begin))[0]] == [2]
    for _ in range(50):
        other.keep("1", answer(1, "x" * 500))
    assert await replayed(other, begin) == ([], None)

    other.forget_all()
    one.forget_all()
    assert store.is_empty


async def test_one_event_larger_than_all_room_is_dropped_itself() -> None:
    store = StreamEvents(max_bytes=1_000, max_session_bytes=10_000)
    one = store.new_session()
    begin = one.keep("1", None)
    large = one.keep("1", answer(1, "x" * 5_000))

    assert await replayed(one, begin) == await replayed(one, large) == ([], None)
    after = one.keep("1", None)
    assert await replayed(one, after) == ([], "1")
