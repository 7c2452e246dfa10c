"""Our messages on their way out over stdio: each goes straight into the pipe, in the order in which it is sent.

What is in them is none of its business, nor is reading.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic_core import PydanticSerializationError, to_json

from goat_mcp.server.prepared_list import prepared_frame
from goat_mcp.server.stdio.frame_validation import Fault

_SURROGATE = re.compile("[\ud800-\udfff]")
WRITE_BUFFER_BYTES = 256 * 1024
"""What may lie unread by the client before those who send have to wait."""


class OpenRequests:
    """Refuses a second request under an id that is still open: its sender could not tell the answers apart (PR-12)."""

    def __init__(self) -> None:
        self._ids: dict[str, types.RequestId] = {}
        self._none_open: anyio.Event | None = None
        """Set when none is open any more; None if nobody waits for that."""

    def arrives(self, message: types.JSONRPCMessage) -> Fault | None:
        """Note a message of the client; the fault of one that must not be passed on."""
        if isinstance(message, types.JSONRPCRequest):
            return self.opens(message.id)
        if isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            # What was cancelled is never answered.
            self._forget(str((message.params or {}).get("requestId")))
        return None

    def opens(self, request_id: types.RequestId) -> Fault | None:
        """Note a request; its fault, if that id is taken."""
        key = str(request_id)  # the SDK takes 1 and "1" for the same request, too
        if key in self._ids:
            reason = "this id belongs to a request that has not been answered yet"
            return Fault(types.INVALID_REQUEST, reason, request_id)
        self._ids[key] = request_id
        return None

    def leaves(self, message: types.JSONRPCMessage) -> None:
        """Note a message of ours: an answer closes its request."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self.closes(message.id)

    def closes(self, request_id: types.RequestId | None) -> None:
        """Note the answer to a request."""
        self._forget(str(request_id))

    async def all_closed(self, within_s: float) -> list[types.RequestId]:
        """Wait until none is open. Returns those that are, once the time is up."""
        with anyio.move_on_after(within_s):
            while self._ids:
                self._none_open = anyio.Event()
                await self._none_open.wait()
        return list(self._ids.values())

    def _forget(self, key: str) -> None:
        self._ids.pop(key, None)
        if self._none_open is not None and not self._ids:
            self._none_open.set()


class FrameWriter:
    """A `WriteStream` of the SDK's without a task behind it. `on_lost` is called once nobody can read any more."""

    def __init__(self, writer: asyncio.StreamWriter, requests: OpenRequests, on_lost: Callable[[], None]) -> None:
        self._writer = writer
        self._requests = requests
        self._on_lost = on_lost
        self._is_closed = False
        self._held_back: dict[str, anyio.Event] = {}
        writer.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    async def send(self, item: SessionMessage, /) -> None:
        """Raises `ClosedResourceError` and `BrokenResourceError`, as the SDK's own streams do."""
        if self._is_closed:
            raise anyio.ClosedResourceError
        self.post(item.message)
        await self.room()

    def post_result(self, request_id: types.RequestId, result: dict[str, Any]) -> None:
        """Write a result of which no model was made, without waiting. Raises `ClosedResourceError`."""
        if self._is_closed:
            raise anyio.ClosedResourceError
        self._requests.closes(request_id)
        self.post_frame(result_frame(request_id, result))

    async def room(self) -> None:
        """Wait where the client has not read enough."""
        if self._writer.transport.get_write_buffer_size() > WRITE_BUFFER_BYTES:
            try:
                await self._writer.drain()
            except (BrokenPipeError, ConnectionResetError):
                self._on_lost()
                raise anyio.BrokenResourceError from None

    def post(self, message: types.JSONRPCMessage) -> None:
        """Write without waiting, also when the stream is closed: the pipe ends after it."""
        if self._held_back and (answered := self._held_back.pop(str(getattr(message, "id", "")), None)) is not None:
            answered.set()
            return
        self._requests.leaves(message)
        self._writer.write(message_frame(message) + b"\n")

    def keep_back(self, request_id: str) -> anyio.Event:
        """The client is not to see the answer to this request, which is not its own. Set once there is one."""
        answered = self._held_back[request_id] = anyio.Event()
        return answered

    async def flush(self) -> None:
        """Wait until all is in the pipe."""
        self._writer.transport.set_write_buffer_limits(high=0)
        try:
            await self._writer.drain()
        except (BrokenPipeError, ConnectionResetError):
            self._on_lost()

    def post_frame(self, frame: bytes) -> None:
        """Write what is no message of the SDK's."""
        self._writer.write(frame + b"\n")

    async def aclose(self) -> None:
        self._is_closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


def result_frame(request_id: types.RequestId, result: dict[str, Any]) -> bytes:
    """An answer of which no model was made."""
    frame = {"jsonrpc": "2.0", "id": request_id, "result": result}
    try:
        return to_json(frame)
    except PydanticSerializationError:
        return _escaped(frame)


def message_frame(message: types.JSONRPCMessage) -> bytes:
    try:
        if (prepared := prepared_frame(message)) is not None:
            return prepared
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except (PydanticSerializationError, UnicodeEncodeError):
        # Half of a surrogate pair.
        return _escaped(message.model_dump(by_alias=True, exclude_unset=True))


def _escaped(frame: dict[str, Any]) -> bytes:
    """With what UTF-8 lacks written as text: an escape that stands for it is JSON, but few clients read it."""
    text = json.dumps(frame, ensure_ascii=False)
    return _SURROGATE.sub(lambda half: rf"\\u{ord(half[0]):x}", text).encode()
