"""The stdio transport: the SDK's stream contract without a thread hop per message.

The SDK's own `stdio_server` serves where the pipes cannot be polled (Windows, a redirected file).
R-SCHEMA-5: the wire is a private descriptor, fd 1 points at stderr, a frame has a size limit.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import (  # the stream pair the SDK's own transports are made of
    ContextReceiveStream,
    ContextSendStream,
    create_context_streams,
)
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from goat_mcp.server.open_requests import OpenRequests
from goat_mcp.server.strict_frames import Fault, find_fault, request_id_of
from goat_mcp.telemetry import Telemetry

READ_CHUNK_BYTES = 256 * 1024
WRITE_BUFFER_BYTES = 256 * 1024
Inbound = SessionMessage | Exception
Streams = tuple[ContextReceiveStream[Inbound], ContextSendStream[SessionMessage]]


@asynccontextmanager
async def stdio_streams(*, max_frame_bytes: int, telemetry: Telemetry) -> AsyncGenerator[Streams]:
    """Yield (read, write) over this process's stdin and stdout, which nobody else can reach meanwhile."""
    if sys.platform == "win32" or not (_is_pollable(0) and _is_pollable(1)):
        async with stdio_server() as streams:
            yield streams
        return
    loop = asyncio.get_running_loop()
    wire_in, wire_out = _take_wire()
    reader = asyncio.StreamReader(limit=READ_CHUNK_BYTES)
    read_transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(wire_in, "rb", buffering=0)
    )
    write_transport, write_protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(wire_out, "wb", buffering=0)
    )
    writer = asyncio.StreamWriter(write_transport, write_protocol, None, loop)
    write_transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
    inbound_send, inbound = create_context_streams[Inbound](0)
    outbound, outbound_receive = create_context_streams[SessionMessage](0)
    requests = OpenRequests()

    async def read_wire() -> None:
        async with inbound_send:
            async for frame in frames(reader, max_frame_bytes):
                message = _parse(frame, max_frame_bytes)
                fault = message if isinstance(message, Fault) else requests.arrives(message)
                if fault is not None:
                    telemetry.warning("a client frame was refused", answer=fault.answer().decode())
                    writer.write(fault.answer() + b"\n")
                elif not isinstance(message, Fault):
                    await inbound_send.send(SessionMessage(message))

    async def write_wire() -> None:
        async with outbound_receive:
            async for item in _receive_all(outbound_receive):
                requests.leaves(item.message)
                writer.write(_dump(item.message) + b"\n")
                if write_transport.get_write_buffer_size() > WRITE_BUFFER_BYTES:
                    await writer.drain()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(read_wire)
            group.start_soon(write_wire)
            yield inbound, outbound
            group.cancel_scope.cancel()
    except* (BrokenPipeError, ConnectionResetError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        # The client is gone: the end of the connection, not a failure.
        telemetry.debug("the client closed the connection")
    finally:
        write_transport.close()
        read_transport.close()


async def frames(reader: asyncio.StreamReader, max_frame_bytes: int) -> AsyncIterator[bytes | None]:
    """Lines without their end, blank ones left out. None stands for a line over the limit, which is not kept."""
    parts: list[bytes] = []
    held_bytes = 0
    while chunk := await reader.read(READ_CHUNK_BYTES):
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


async def _receive_all(stream: ContextReceiveStream[SessionMessage]) -> AsyncIterator[SessionMessage]:
    try:
        async for item in stream:
            yield item
    except anyio.ClosedResourceError:
        return


def _parse(frame: bytes | None, max_frame_bytes: int) -> types.JSONRPCMessage | Fault:
    """The message of a frame, or what is answered where there is none."""
    if frame is None:
        return Fault(types.INVALID_REQUEST, f"the message is longer than {max_frame_bytes} bytes and was dropped")
    if (fault := find_fault(frame)) is not None:
        return fault
    try:
        return types.jsonrpc_message_adapter.validate_json(frame, by_name=False)
    except ValidationError:
        return Fault(types.INVALID_REQUEST, "not a JSON-RPC 2.0 message", request_id_of(frame))


def _dump(message: types.JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except (PydanticSerializationError, UnicodeEncodeError):
        # A lone surrogate: valid in JSON's escapes, not in UTF-8.
        return json.dumps(message.model_dump(by_alias=True, exclude_unset=True), ensure_ascii=True).encode()


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
