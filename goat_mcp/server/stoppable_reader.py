"""A pipe that can be left in the middle: what was read and not yet made a message of is known then."""

from __future__ import annotations

import asyncio

import anyio


class StoppableReader:
    """Reads of an `asyncio.StreamReader`, until `stop`: then what came by then, and the end.

    Of a line that does not end, a little more than `max_bytes` are kept: enough to know that it is too long.
    """

    def __init__(self, reader: asyncio.StreamReader, max_bytes: int) -> None:
        self._reader = reader
        self._max_bytes = max_bytes
        self._kept_bytes = 0
        self._waiting = anyio.CancelScope()
        self._since_line_end: list[bytes] = []
        self.is_stopped = False

    async def read(self, size: int) -> bytes:
        # A read that has something to give does not wait, and is therefore not cancelled.
        chunk = b""
        with anyio.CancelScope() as self._waiting:
            if self.is_stopped:
                self._waiting.cancel()
            chunk = await self._reader.read(size)
        if b"\n" in chunk:
            self._since_line_end.clear()
            self._kept_bytes = 0
        if self._kept_bytes <= self._max_bytes:
            self._since_line_end.append(chunk)
            self._kept_bytes += len(chunk)
        return chunk

    def stop(self) -> None:
        self.is_stopped = True
        self._waiting.cancel()

    @property
    def unread(self) -> bytes:
        """The beginning of a line that has not ended."""
        return b"".join(self._since_line_end).rpartition(b"\n")[2]
