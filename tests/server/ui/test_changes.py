"""Open pages hear of changes, within limits, and keep no server from stopping."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from starlette.types import Message, Scope

from goat_mcp.server.ui import changes
from goat_mcp.server.ui.app import ui_app
from goat_mcp.server.ui.changes import MAX_STREAMS
from goat_mcp.server.ui.parts import UiParts
from tests.server.ui.open_page import HOST, page_parts, request_for

pytestmark = pytest.mark.anyio


class Stream:
    """One `GET /ui/events` of a browser that is logged in, message by message."""

    def __init__(self, parts: UiParts) -> None:
        self.parts = parts
        self.cookie = parts.sessions.open()
        self.left = anyio.Event()
        self.ended = anyio.Event()
        self._send, self._sent = anyio.create_memory_object_stream[Message](100)

    async def run(self) -> None:
        headers = [(b"host", HOST.encode()), (b"cookie", f"goat_mcp_ui_8765={self.cookie}".encode())]
        scope: Scope = {"type": "http", "method": "GET", "path": "/ui/events", "headers": headers, "query_string": b""}
        await ui_app(self.parts, frozenset({HOST}))(scope, self._receive, self._send.send)
        self.ended.set()

    async def _receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def next(self) -> Message:
        with anyio.fail_after(5):
            return await self._sent.receive()

    async def opened(self) -> None:
        assert (await self.next())["status"] == 200
        assert b"event: ready" in (await self.next())["body"]


@asynccontextmanager
async def streams(parts: UiParts, count: int) -> AsyncGenerator[list[Stream]]:
    made = [Stream(parts) for _ in range(count)]
    async with anyio.create_task_group() as group:
        for stream in made:
            group.start_soon(stream.run)
        try:
            yield made
        finally:
            for stream in made:
                stream.left.set()


async def test_a_page_hears_of_a_change_within_a_second(tmp_path: Path) -> None:
    parts = page_parts(tmp_path)
    async with streams(parts, 1) as (stream,):
        await stream.opened()

        await anyio.to_thread.run_sync(parts.queue.store.add, request_for())
        with anyio.fail_after(1):
            heard = await stream.next()

    assert heard["body"].startswith(b"event: changed\ndata: ")


@pytest.mark.parametrize(
    "file", ["goat.lock", "trust.json", "status/1.json", "plans/scope/plan.json", "rules/scope.jsonl"]
)
async def test_a_page_hears_of_every_file_that_it_shows(tmp_path: Path, file: str) -> None:
    parts = page_parts(tmp_path)
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    async with streams(parts, 1) as (stream,):
        await stream.opened()
        path.write_text("one")
        assert b"changed" in (await stream.next())["body"]

        if path.suffix == ".jsonl":  # one that grows
            path.write_text("one\ntwo")
            assert b"changed" in (await stream.next())["body"]


async def test_all_pages_share_one_look_at_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = page_parts(tmp_path)
    looks: list[Sequence[Path]] = []
    look = changes.mark_of

    def counted(files: Sequence[Path], folders: Sequence[Path]) -> object:
        looks.append(files)
        return look(files, folders)

    monkeypatch.setattr(changes, "mark_of", counted)
    async with streams(parts, 8) as opened:
        for stream in opened:
            await stream.opened()
        looks.clear()
        await anyio.to_thread.run_sync(parts.queue.store.add, request_for())
        for stream in opened:
            assert b"changed" in (await stream.next())["body"]

        assert len(looks) < 8


async def test_a_page_that_is_too_much_is_refused_and_one_that_leaves_makes_room(tmp_path: Path) -> None:
    parts = page_parts(tmp_path)
    async with streams(parts, MAX_STREAMS) as opened:
        for stream in opened:
            await stream.opened()
        async with streams(parts, 1) as (refused,):
            assert (await refused.next())["status"] == 503

        opened[0].left.set()
        with anyio.fail_after(5):
            await opened[0].ended.wait()
        async with streams(parts, 1) as (stream,):
            await stream.opened()


async def test_a_stream_ends_with_its_session(tmp_path: Path) -> None:
    parts = page_parts(tmp_path)
    async with streams(parts, 1) as (stream,):
        await stream.opened()
        session = parts.sessions.find(stream.cookie)
        assert session is not None

        parts.sessions.end(session)

        with anyio.fail_after(2):
            await stream.ended.wait()


async def test_a_stream_ends_at_once_when_the_server_stops(tmp_path: Path) -> None:
    parts = page_parts(tmp_path)
    async with streams(parts, 1) as (stream,):
        await stream.opened()

        parts.changes.close()

        with anyio.fail_after(1):
            await stream.ended.wait()


async def test_a_silent_stream_shows_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "HEARTBEAT_S", 0.3)
    parts = page_parts(tmp_path)
    async with streams(parts, 1) as (stream,):
        await stream.opened()

        assert (await stream.next())["body"] == b": still here\n\n"
