"""A pipe that can be left in the middle: what was read and not yet made a message of is known then."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import cast

HELD_BYTES = 512 * 1024
"""What may lie here unread before the pipe is left to fill."""


class StoppableReader(asyncio.Protocol):
    """What comes out of a pipe, until `stop`: then what came by then, and the end.

    Of a line that does not end, a little more than `max_bytes` are kept: enough to know that it is too long.
    A `StreamReader` would have to be waited for inside a cancel scope, one for each frame.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept_bytes = 0
        self._since_line_end: list[bytes] = []
        self._chunks: deque[bytes] = deque()
        self._held_bytes = 0
        self._pipe: asyncio.ReadTransport | None = None
        self._is_full = False
        self._has_ended = False
        self._lost: Exception | None = None
        self._news: asyncio.Future[None] | None = None
        self.is_stopped = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pipe = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._chunks.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > HELD_BYTES and self._pipe is not None and not self._is_full:
            self._is_full = True
            self._pipe.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended, self._lost = True, exc
        self._wake()

    async def read(self) -> bytes:
        """The next of what came; nothing at the end. Raises what the pipe was lost by."""
        while not self._chunks:
            if self.is_stopped or self._has_ended:
                if self._lost is not None:
                    raise self._lost
                return b""
            self._news = asyncio.get_running_loop().create_future()
            try:
                await self._news
            finally:
                self._news = None
        chunk = self._chunks.popleft()
        self._held_bytes -= len(chunk)
        if self._is_full and not self.is_stopped and self._pipe is not None and self._held_bytes < HELD_BYTES // 2:
            self._is_full = False
            self._pipe.resume_reading()
        if b"\n" in chunk:
            self._since_line_end.clear()
            self._kept_bytes = 0
        if self._kept_bytes <= self._max_bytes:
            self._since_line_end.append(chunk)
            self._kept_bytes += len(chunk)
        return chunk

    def stop(self) -> None:
        """Leave the rest in the pipe."""
        self.is_stopped = True
        if self._pipe is not None and not self._is_full:
            self._pipe.pause_reading()
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    @property
    def unread(self) -> bytes:
        """The beginning of a line that has not ended."""
        return b"".join(self._since_line_end).rpartition(b"\n")[2]
