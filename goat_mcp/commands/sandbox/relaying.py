"""Bytes between a sandboxed program and the server it may reach, until one of them ends or neither says anything.

Whether it may reach it was decided before, in `domain_proxy`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import NamedTuple

from goat_mcp.commands.sandbox.proxy_requests import ProxyRequest

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_PIECE_BYTES = 64 * 1024
_LAST_BYTES_S = 10.0
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n]*)?\r\n\Z")


class RelayLimits(NamedTuple):
    """A connection on which nothing has moved for `idle_s` is ended."""

    idle_s: float = 300.0


class Relay:
    """One connection, for one use. Ends both sides."""

    def __init__(self, client: Stream, upstream: Stream, limits: RelayLimits) -> None:
        self._client, self._upstream = client, upstream
        self._idle_s = limits.idle_s
        self._loop = asyncio.get_running_loop()
        self._last_s = self._loop.time()

    async def tunnel(self) -> None:
        """All bytes, both ways."""
        self._client[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await self._run(self._copy(self._client[0], self._upstream[1]))

    async def one_request(self, request: ProxyRequest) -> None:
        """A plain request, its body and the answer. What the program says afterwards is not heard."""
        self._upstream[1].write(request.head)
        await self._run(self._body(request.body_bytes), ends_with_answer=True)

    async def _run(self, sent: Coroutine[None, None, None], *, ends_with_answer: bool = False) -> None:
        try:
            async with asyncio.TaskGroup() as both:
                sending = both.create_task(sent)
                await self._copy(self._upstream[0], self._client[1])
                if ends_with_answer:
                    sending.cancel()
        except* (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # one side has gone, or neither says anything: the other is told by the end
        finally:
            await self._end()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await self._read(reader, _PIECE_BYTES):
            await self._write(writer, piece)
        if writer.can_write_eof():
            writer.write_eof()

    async def _body(self, length: int | None) -> None:
        reader, writer = self._client[0], self._upstream[1]
        if length is not None:
            await self._exactly(length)
            return
        while True:
            line = await reader.readuntil(b"\r\n")
            # The size as we have read it, without what else may stand in the line.
            size = _chunk_size(line)
            await self._write(writer, b"%x\r\n" % size)
            if size == 0:
                await self._write(writer, b"\r\n")
                return
            await self._exactly(size)
            if await reader.readexactly(2) != b"\r\n":
                raise OSError("a chunk is longer than it says")
            await self._write(writer, b"\r\n")

    async def _exactly(self, length: int) -> None:
        while length > 0:
            piece = await self._read(self._client[0], min(length, _PIECE_BYTES))
            if not piece:
                raise OSError("the body is shorter than it says")
            length -= len(piece)
            await self._write(self._upstream[1], piece)

    async def _read(self, reader: asyncio.StreamReader, most: int) -> bytes:
        """The next bytes; empty at the end. Waits as long as the other direction moves."""
        while True:
            left_s = self._last_s + self._idle_s - self._loop.time()
            if left_s <= 0:
                raise TimeoutError("nothing has moved")
            try:
                async with asyncio.timeout(left_s):
                    piece = await reader.read(most)
            except TimeoutError:
                continue
            self._last_s = self._loop.time()
            return piece

    async def _write(self, writer: asyncio.StreamWriter, piece: bytes) -> None:
        writer.write(piece)
        async with asyncio.timeout(self._idle_s):
            await writer.drain()
        self._last_s = self._loop.time()

    async def _end(self) -> None:
        """What is under way shall arrive, but nobody waits long for who does not take it."""
        writers = (self._client[1], self._upstream[1])
        for writer in writers:
            writer.close()
        try:
            async with asyncio.timeout(_LAST_BYTES_S):
                await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)
        finally:
            for writer in writers:
                writer.transport.abort()


def _chunk_size(line: bytes) -> int:
    size = _CHUNK_SIZE.match(line)
    if size is None:
        raise OSError("a chunk does not say its size")
    return int(size[1], 16)
