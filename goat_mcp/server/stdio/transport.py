"""The stdio transport: the SDK's stream contract without a thread hop per message.

The SDK's own `stdio_server` serves where the pipes cannot be polled (Windows, a redirected file).
R-SCHEMA-5: the wire is a private descriptor, fd 1 points at stderr, a frame has a size limit.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import (  # the streams the SDK's own transports are made of
    ContextReceiveStream,
    create_context_streams,
)
from mcp.shared._stream_protocols import WriteStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from goat_mcp.core.restart import Restart
from goat_mcp.server.open_requests import OpenRequests
from goat_mcp.server.restart_handoff import HandoffOfSessions
from goat_mcp.server.stdio.fast_path import FastPath
from goat_mcp.server.stdio.frame_validation import Fault, read_strictly, request_id_of
from goat_mcp.server.stdio.frame_writer import FrameWriter
from goat_mcp.server.stdio.stoppable_reader import StoppableReader
from goat_mcp.state.telemetry import Telemetry

Inbound = SessionMessage | Exception
Streams = tuple[ContextReceiveStream[Inbound], WriteStream[SessionMessage]]


@asynccontextmanager
async def stdio_streams(
    short_calls: FastPath, *, max_frame_bytes: int, telemetry: Telemetry, succession: HandoffOfSessions | None = None
) -> AsyncGenerator[Streams]:
    """Yield (read, write) over this process's stdin and stdout, which nobody else can reach meanwhile."""
    if sys.platform == "win32" or not (_is_pollable(0) and _is_pollable(1)):
        async with stdio_server() as streams:
            yield streams
        return
    if succession is not None:
        succession.restart.prevented = ""
    async with wire_streams(
        *_take_wire(), short_calls, max_frame_bytes=max_frame_bytes, telemetry=telemetry, succession=succession
    ) as streams:
        yield streams


@asynccontextmanager
async def wire_streams(
    wire_in: int,
    wire_out: int,
    short_calls: FastPath,
    *,
    max_frame_bytes: int,
    telemetry: Telemetry,
    succession: HandoffOfSessions | None = None,
) -> AsyncGenerator[Streams]:
    """Yield (read, write) over two pipes, of all messages but the calls that go the short way."""
    loop = asyncio.get_running_loop()
    source = StoppableReader(max_frame_bytes)
    if succession is not None and succession.handover.unread:
        source.data_received(succession.handover.unread)
    read_transport, _ = await loop.connect_read_pipe(lambda: source, os.fdopen(wire_in, "rb", buffering=0))
    write_transport, write_protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(wire_out, "wb", buffering=0)
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

            async def read_wire() -> None:
                # Calls end before the SDK hears of the end, and closes the way out.
                async with inbound_send, _ended(short_calls):
                    if succession is not None:
                        await succession.greet_again(inbound_send, writer)
                    async for frame in frames(source, max_frame_bytes):
                        value = _read(frame, max_frame_bytes)
                        if short_calls.takes(value):
                            call = cast("dict[str, Any]", value)
                            if (fault := requests.opens(call["id"])) is not None:
                                refuse(fault)
                            else:
                                short_calls.start(call, writer)
                            continue
                        if succession is not None:
                            succession.handover.note(value)
                        message = value if isinstance(value, Fault) else _parse(frame or b"")
                        fault = message if isinstance(message, Fault) else requests.arrives(message)
                        if fault is not None:
                            refuse(fault)
                        elif not isinstance(message, Fault) and short_calls.passes_on(message):
                            await inbound_send.send(SessionMessage(message))
                    if succession is not None and source.is_stopped:
                        await succession.prepare(wire_in, wire_out, source.unread, requests, writer)

            async def stop_reading(restart: Restart) -> None:
                await restart.wanted.wait()
                source.stop()

            if succession is not None:
                group.start_soon(stop_reading, succession.restart)
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
    import fcntl

    wire_in = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    wire_out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return wire_in, wire_out
