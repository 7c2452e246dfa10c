"""The stdio transport: the SDK's stream contract without a thread hop per message.

Where the event loop cannot watch them (Windows, a redirected file, a terminal) a thread each reads and writes.
R-SCHEMA-5: the wire is a private descriptor, fd 1 points at stderr, a frame has a size limit.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.os.win32.utilities import rebind_std_handle_to_fd
from mcp.shared._context_streams import (  # the streams the SDK's own transports are made of
    ContextReceiveStream,
    create_context_streams,
)
from mcp.shared._stream_protocols import WriteStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from goat_mcp.core import platform, posix
from goat_mcp.core.restart import Restart
from goat_mcp.processes.thread_pipes import ThreadReader, ThreadWriter
from goat_mcp.server.restart_handoff import StdioHandoff
from goat_mcp.server.stdio.fast_path import FastPath
from goat_mcp.server.stdio.frame_validation import Fault, read_strictly, request_id_of
from goat_mcp.server.stdio.frame_writer import FrameWriter, OpenRequests
from goat_mcp.state.telemetry import Telemetry

Inbound = SessionMessage | Exception
Streams = tuple[ContextReceiveStream[Inbound], WriteStream[SessionMessage]]


_NO_HANDOFF = "the next process could not take over the connection here: a thread reads it, or the system has no `exec`"
HELD_BYTES = 512 * 1024
"""What may lie here unread before the pipe is left to fill."""


def _not_taken(line: bytes) -> bool:
    return False


class StoppableReader(asyncio.Protocol):
    """What comes out of a pipe, until `stop`: then what came by then, and the end. The rest stays in the pipe.

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
        self._is_between_lines = True
        self.is_stopped = False
        self.takes_at_once: Callable[[bytes], bool] = _not_taken
        """Is offered each whole line that nothing is waiting before; True if nobody need read it any more."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pipe = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        is_first = self._news is not None and self._is_between_lines and not self._chunks and not self.is_stopped
        if is_first and data.find(b"\n") == len(data) - 1 and self.takes_at_once(data):
            return
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
        self._is_between_lines = chunk.endswith(b"\n")
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


@asynccontextmanager
async def stdio_streams(
    fast_path: FastPath, *, max_frame_bytes: int, telemetry: Telemetry, handoff: StdioHandoff | None = None
) -> AsyncGenerator[Streams]:
    """Yield (read, write) over this process's stdin and stdout, which nobody else can reach meanwhile."""
    by_threads = platform.SYSTEM == "windows" or not (_is_pollable(0) and _is_pollable(1))
    if by_threads:
        if handoff is not None:
            handoff.restart.prevented = _NO_HANDOFF
        handoff = None
    if handoff is not None:
        handoff.restart.allow()
    async with wire_streams(
        *_take_wire(),
        fast_path,
        max_frame_bytes=max_frame_bytes,
        telemetry=telemetry,
        handoff=handoff,
        by_threads=by_threads,
    ) as streams:
        yield streams


@asynccontextmanager
async def wire_streams(
    wire_in: int,
    wire_out: int,
    fast_path: FastPath,
    *,
    max_frame_bytes: int,
    telemetry: Telemetry,
    handoff: StdioHandoff | None = None,
    by_threads: bool = False,
) -> AsyncGenerator[Streams]:
    """Yield (read, write) over two pipes, of all messages but the calls that take the fast path."""
    loop = asyncio.get_running_loop()
    source = StoppableReader(max_frame_bytes)
    if handoff is not None and handoff.state.unread:
        source.data_received(handoff.state.unread)
    write_protocol = asyncio.streams.FlowControlMixin()
    if by_threads:
        read_transport: asyncio.ReadTransport = ThreadReader(wire_in, source, loop)
        write_transport: asyncio.WriteTransport = ThreadWriter(wire_out, write_protocol, loop)
    else:
        read_transport, _ = await loop.connect_read_pipe(lambda: source, os.fdopen(wire_in, "rb", buffering=0))
        write_transport, _ = await loop.connect_write_pipe(
            lambda: write_protocol, os.fdopen(wire_out, "wb", buffering=0)
        )
    inbound_send, inbound = create_context_streams[Inbound](0)
    requests = OpenRequests()
    try:
        async with anyio.create_task_group() as group:
            pipe = asyncio.StreamWriter(write_transport, write_protocol, None, loop)
            writer = FrameWriter(pipe, requests, on_lost=group.cancel_scope.cancel)

            def refuse(fault: Fault) -> None:
                telemetry.warning("a client frame was refused", answer=fault.answer().decode())
                writer.post_frame(fault.answer())

            def begin(value: Any) -> None:
                if (fault := requests.opens(value["id"])) is not None:
                    refuse(fault)
                else:
                    fast_path.start(value, writer)

            def takes_at_once(line: bytes) -> bool:
                """Begin a plain call where it arrives. To wake the task that reads costs a turn of the event loop."""
                value = read_strictly(line) if fast_path.is_open and len(line) <= max_frame_bytes else None
                if not fast_path.takes(value):
                    return False
                begin(value)
                return True

            source.takes_at_once = takes_at_once

            async def read_wire() -> None:
                # Calls end before the SDK hears of the end, and closes the way out.
                async with inbound_send, _ended(fast_path):
                    if handoff is not None:
                        await handoff.greet_again(inbound_send, writer)
                    async for frame in frames(source, max_frame_bytes):
                        value = _read(frame, max_frame_bytes)
                        if fast_path.takes(value):
                            begin(value)
                            continue
                        if handoff is not None:
                            handoff.state.note(value)
                        message = value if isinstance(value, Fault) else _parse(frame or b"")
                        fault = message if isinstance(message, Fault) else requests.arrives(message)
                        if fault is not None:
                            refuse(fault)
                        elif not isinstance(message, Fault) and fast_path.passes_on(message):
                            await inbound_send.send(SessionMessage(message))
                    if handoff is not None and source.is_stopped:
                        await handoff.prepare(wire_in, wire_out, source.unread, requests, writer)

            async def stop_reading(restart: Restart) -> None:
                await restart.wanted.wait()
                source.stop()

            if handoff is not None:
                group.start_soon(stop_reading, handoff.restart)
            group.start_soon(read_wire)
            yield inbound, writer
            group.cancel_scope.cancel()
    except* (BrokenPipeError, ConnectionResetError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        # The client is gone: the end of the connection, not a failure.
        telemetry.debug("the client closed the connection")
    finally:
        write_transport.close()
        read_transport.close()


@asynccontextmanager
async def _ended(calls: FastPath) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await calls.end()


async def frames(reader: StoppableReader, max_frame_bytes: int) -> AsyncIterator[bytes | None]:
    """Lines without their end, blank ones left out. None stands for a line over the limit, which is not kept."""
    parts: list[bytes] = []
    held_bytes = 0
    while chunk := await reader.read():
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            parts.append(piece)
            held_bytes += len(piece)
            line = None if held_bytes > max_frame_bytes else b"".join(parts)
            parts, held_bytes = [], 0
            if line is None or line.strip():
                yield line
        held_bytes += len(rest)
        if held_bytes > max_frame_bytes:
            parts.clear()
        elif rest:
            parts.append(rest)


def _read(frame: bytes | None, max_frame_bytes: int) -> object | Fault:
    """The value in a frame, or what is answered where there is none that means one thing only."""
    if frame is None:
        return Fault(types.INVALID_REQUEST, f"the message is longer than {max_frame_bytes} bytes and was dropped")
    return read_strictly(frame)


def _parse(frame: bytes) -> types.JSONRPCMessage | Fault:
    """The message in sound JSON, or what is answered where it is none."""
    try:
        return types.jsonrpc_message_adapter.validate_json(frame, by_name=False)
    except ValidationError:
        return Fault(types.INVALID_REQUEST, "not a JSON-RPC 2.0 message", request_id_of(frame))


def _is_pollable(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _take_wire() -> tuple[int, int]:
    """Duplicate fds 0 and 1 for ourselves, then point 0 at nothing and 1 at stderr."""
    wire_in, wire_out = posix.duplicate_above(0, 3), posix.duplicate_above(1, 3)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if platform.SYSTEM == "windows":
        # Children inherit these handles, which `dup2` does not change.
        rebind_std_handle_to_fd(0)
        rebind_std_handle_to_fd(1)
    return wire_in, wire_out
