"""Who is told of changes, how often, and that nobody waits for a client that does not read."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import mcp_types as types
import pytest

from goat_mcp.server.change_notifications import MAX_SUBSCRIPTIONS, ChangeHub, ListKind

pytestmark = pytest.mark.anyio
WAIT_S = 60
TOOLS = "tools"


@dataclass
class Session:
    """A handshake connection: notes what it is told; while `is_stuck` it takes nothing."""

    is_stuck: bool = False
    told: list[str] = field(default_factory=list[str])
    _came: anyio.Event = field(default_factory=anyio.Event)
    _free: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self._connection = SimpleNamespace(exit_stack=AsyncExitStack())

    async def send_tool_list_changed(self) -> None:
        await self._take(TOOLS)

    async def send_resource_updated(self, uri: str) -> None:
        await self._take(uri)

    async def _take(self, what: str) -> None:
        if self.is_stuck:
            await self._free.wait()
        self.told.append(what)
        self._came.set()
        self._came = anyio.Event()

    def read_again(self) -> None:
        self.is_stuck = False
        self._free.set()

    async def wait_for(self, count: int) -> list[str]:
        with anyio.fail_after(WAIT_S):
            while len(self.told) < count:
                await self._came.wait()
        return self.told

    async def close(self) -> None:
        await self._connection.exit_stack.aclose()


class Stream:
    """A 2026-07-28 client's listen stream: the methods of what it is sent, in order."""

    def __init__(self) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[str](100)

    async def send_notification(self, notification: Any, related_request_id: Any) -> None:
        self._send.send_nowait(notification.method)

    def end(self) -> None:
        self._send.send_nowait("ended")

    async def next(self) -> str:
        with anyio.fail_after(WAIT_S):
            return await self._receive.receive()

    @property
    def unread(self) -> int:
        return self._receive.statistics().current_buffer_used


@dataclass
class Hub:
    """A hub and who is speaking to it."""

    principal: str = "alice"

    def __post_init__(self) -> None:
        self.hub = ChangeHub(lambda: self.principal)

    async def subscribed(self, session: Session, *uris: str, principal: str = "alice") -> Session:
        self.principal = principal
        for uri in uris:
            assert await self.hub.subscribe(_context(session), uri)
        return session


def _context(session: Session) -> Any:
    return SimpleNamespace(session=session)


@asynccontextmanager
async def running() -> AsyncGenerator[Hub]:
    hub = Hub()
    async with anyio.create_task_group() as group:
        group.start_soon(hub.hub.run)
        yield hub
        group.cancel_scope.cancel()


# CHG-1
async def test_several_changes_at_once_are_told_once() -> None:
    async with running() as hub:
        session = await hub.subscribed(Session(), "goat://todos", "goat://calls")

        for _ in range(100):
            hub.hub.resource_changed("goat://todos", "alice")
            await anyio.lowlevel.checkpoint()
        hub.hub.resource_changed("goat://calls", "alice")

        assert sorted(await session.wait_for(2)) == ["goat://calls", "goat://todos"]


async def test_a_change_of_the_tools_in_another_thread_is_told_from_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What wakes waiting tasks is not safe on any other thread."""
    told_by: list[int] = []
    list_changed = ChangeHub.list_changed

    def noted(hub: ChangeHub, kind: ListKind) -> None:
        told_by.append(threading.get_ident())
        if told_by == [threading.main_thread().ident]:
            list_changed(hub, kind)

    monkeypatch.setattr(ChangeHub, "list_changed", noted)
    async with running() as hub:
        session = await hub.subscribed(Session(), "goat://todos")
        hub.hub.listed()
        await anyio.wait_all_tasks_blocked()

        await anyio.to_thread.run_sync(hub.hub.tools_changed)
        await anyio.lowlevel.checkpoint()

        assert told_by == [threading.main_thread().ident]
        assert await session.wait_for(1) == [TOOLS]


async def test_a_principal_hears_of_its_own_things_and_of_everybodys() -> None:
    async with running() as hub:
        alice = await hub.subscribed(Session(), "goat://todos", "goat://plans")
        bob = await hub.subscribed(Session(), "goat://todos", "goat://plans", principal="bob")

        hub.hub.resource_changed("goat://todos", "bob")
        hub.hub.resource_changed("goat://plans", None)

        assert sorted(await bob.wait_for(2)) == ["goat://plans", "goat://todos"]
        assert await alice.wait_for(1) == ["goat://plans"]


# CHG-3
async def test_listen_streams_are_kept_apart_by_principal_too() -> None:
    filter = types.SubscriptionFilter(resource_subscriptions=["goat://todos"])
    params = types.SubscriptionsListenRequestParams(notifications=filter)
    alice, bob = Stream(), Stream()
    async with running() as hub, anyio.create_task_group() as group:
        for principal, stream in (("alice", alice), ("bob", bob)):
            hub.principal = principal
            context: Any = SimpleNamespace(session=stream, request_id=principal)
            group.start_soon(hub.hub.listen, context, params)
            assert await stream.next() == "notifications/subscriptions/acknowledged"

        hub.hub.resource_changed("goat://todos", "bob")
        hub.hub.resource_changed("goat://todos", "bob")
        assert await bob.next() == "notifications/resources/updated"
        hub.hub.resource_changed("goat://todos", None)
        assert [await alice.next(), await bob.next()] == ["notifications/resources/updated"] * 2

        hub.hub.close()

    assert not hub.hub.is_watched("goat://todos", None)
    assert (alice.unread, bob.unread) == (0, 0)


async def test_a_listen_stream_that_ends_takes_only_its_own_wishes_with_it() -> None:
    def params(uri: str) -> types.SubscriptionsListenRequestParams:
        filter = types.SubscriptionFilter(resource_subscriptions=[uri])
        return types.SubscriptionsListenRequestParams(notifications=filter)

    async with running() as hub, anyio.create_task_group() as group:
        ending = anyio.CancelScope()

        async def listen(stream: Stream, uri: str, scope: anyio.CancelScope) -> None:
            context: Any = SimpleNamespace(session=stream, request_id=uri)
            with scope:
                await hub.hub.listen(context, params(uri))
            stream.end()

        first, second = Stream(), Stream()
        group.start_soon(listen, first, "goat://todos", ending)
        group.start_soon(listen, second, "goat://calls", anyio.CancelScope())
        for stream in (first, second):
            await stream.next()

        ending.cancel()
        assert await first.next() == "ended"

        assert not hub.hub.is_watched("goat://todos", "alice")
        assert hub.hub.is_watched("goat://calls", "alice")
        hub.hub.close()


async def test_a_client_that_does_not_read_holds_up_nobody_and_is_told_once_when_it_does() -> None:
    async with running() as hub:
        stuck = await hub.subscribed(Session(is_stuck=True), "goat://todos", "goat://calls")
        other = await hub.subscribed(Session(), "goat://todos")

        for round in range(1, 4):
            hub.hub.resource_changed("goat://todos", "alice")
            hub.hub.resource_changed("goat://calls", "alice")
            assert len(await other.wait_for(round)) == round
        stuck.read_again()

        # What it was being told when it stopped reading, and once each what came meanwhile.
        told = await stuck.wait_for(3)
        assert set(told) == {"goat://todos", "goat://calls"} and len(told) == 3


async def test_a_client_that_is_gone_is_forgotten_even_in_the_middle_of_a_notice() -> None:
    async with running() as hub:
        stuck = await hub.subscribed(Session(is_stuck=True), "goat://todos")
        hub.hub.resource_changed("goat://todos", "alice")
        other = await hub.subscribed(Session(), "goat://todos")
        await other.wait_for(1)

        await stuck.close()
        await other.close()

        assert not hub.hub.is_watched("goat://todos", "alice")
        stuck.read_again()
        await anyio.lowlevel.checkpoint()
        assert stuck.told == []


# CHG-3
async def test_tools_and_resources_are_told_to_whom_each_concerns() -> None:
    async with running() as hub:
        hub.hub.listed()
        session = await hub.subscribed(Session(), "goat://todos")

        hub.hub.tools_changed()

        assert await session.wait_for(1) == [TOOLS]


async def test_it_is_known_what_is_watched() -> None:
    hub = Hub()
    await hub.subscribed(Session(), "goat://todos")

    watched = [
        hub.hub.is_watched(uri, principal)
        for uri, principal in [
            ("goat://todos", "alice"),
            ("goat://todos", None),
            ("goat://todos", "bob"),
            ("goat://calls", "alice"),
        ]
    ]

    assert watched == [True, True, False, False]


async def test_a_client_may_watch_many_things_and_not_endlessly_many() -> None:
    hub, session = Hub(), Session()
    await hub.subscribed(session, *[f"goat://tasks/{number}" for number in range(MAX_SUBSCRIPTIONS)])

    assert not await hub.hub.subscribe(_context(session), "goat://todos")
    assert await hub.hub.subscribe(_context(session), "goat://tasks/0")
