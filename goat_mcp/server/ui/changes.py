"""What the open pages watch: one look at the state files for all of them, sent as server-sent events."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import anyio
import anyio.to_thread
from starlette.types import Message, Receive, Scope, Send

from goat_mcp.server.ui.login import session_of
from goat_mcp.state.directory import StateDirectory

LOOK_S = 0.25
HEARTBEAT_S = 15.0
MAX_STREAMS = 16
_FILES = ("approvals.db", "approvals.db-wal", "calls.db", "calls.db-wal", "goat.lock", "trust.json")
_FOLDERS = ("status", "requests", "review", "plans", "rules")
"""Their entries are looked at, too: some are folders of a workspace, some files that grow."""

MAX_ENTRIES = 1000
_Mark = tuple[tuple[int, int], ...]


class Changes:
    """Counts changes of the state. It looks only while somebody asks, at most once in `LOOK_S`."""

    def __init__(self, state: StateDirectory) -> None:
        self._files = [state.path / name for name in _FILES]
        self._folders = [state.path / name for name in _FOLDERS]
        self._number = 0
        self._mark: _Mark = ()
        self._looked_at_s = 0.0
        self._streams = 0
        self._looking = anyio.Lock()
        self.closed = anyio.Event()

    async def number(self) -> int:
        """Another one after each change."""
        async with self._looking:
            now_s = time.monotonic()
            if now_s - self._looked_at_s >= LOOK_S / 2:
                mark = await anyio.to_thread.run_sync(mark_of, self._files, self._folders)
                self._looked_at_s = time.monotonic()
                if mark != self._mark:
                    self._mark = mark
                    self._number += 1
            return self._number

    def close(self) -> None:
        """The server stops: streams end."""
        self.closed.set()

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /ui/events`: `changed` after each change, until the session, the client or the server ends."""
        if self._streams >= MAX_STREAMS or self.closed.is_set():
            headers = [(b"content-type", b"text/plain"), (b"retry-after", b"5")]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": b"too many open pages\n"})
            return
        self._streams += 1
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, receive, group.cancel_scope)
                await self._send_changes(scope, send)
                group.cancel_scope.cancel()
        finally:
            self._streams -= 1

    async def _send_changes(self, scope: Scope, send: Send) -> None:
        session = session_of(scope)
        headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        seen, sent_at_s = await self.number(), time.monotonic()
        await send(_part(f"retry: 1000\nevent: ready\ndata: {seen}\n\n"))
        while not self.closed.is_set() and session.is_open:
            with anyio.move_on_after(LOOK_S):
                await self.closed.wait()
            if (number := await self.number()) != seen:
                seen, sent_at_s = number, time.monotonic()
                await send(_part(f"event: changed\ndata: {number}\n\n"))
            elif time.monotonic() - sent_at_s >= HEARTBEAT_S:
                sent_at_s = time.monotonic()
                await send(_part(": still here\n\n"))
        await send({"type": "http.response.body", "body": b""})


async def _until_gone(receive: Receive, stop: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stop.cancel()


def _part(text: str) -> Message:
    return {"type": "http.response.body", "body": text.encode(), "more_body": True}


def mark_of(files: Sequence[Path], folders: Sequence[Path]) -> _Mark:
    """Another one if one of them was written since. Blocking."""
    found = [*files, *folders]
    for folder in folders:
        with suppress(OSError):
            found += islice(sorted(folder.iterdir(), reverse=True), MAX_ENTRIES)
    return tuple(map(_mark, found))


def _mark(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size
