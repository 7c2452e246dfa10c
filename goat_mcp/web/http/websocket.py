"""A WebSocket of ours (RFC 6455) over a guarded connection: texts out and in. Frames are wsproto's business."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError

if TYPE_CHECKING:
    from wsproto.connection import Connection

    from goat_mcp.web.http.exchange import Exchanges, UpgradedConnection
    from goat_mcp.web.http.target import Target

MAX_MESSAGE_CHARS = 1_000_000
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def can_open() -> bool:
    """Whether the extra goat-mcp[slack] is installed."""
    return find_spec("wsproto") is not None


class WebSocketClosed(ToolError):
    """The other side has ended it."""

    def __init__(self, where: str) -> None:
        super().__init__(ErrorCode.NETWORK, f"{where} has closed the WebSocket", "Try again later.")


class WebSocket:
    """Pings are answered while somebody receives. `heard_s` is when anything came last, by the monotonic clock."""

    def __init__(self, where: str, connection: UpgradedConnection, frames: Connection) -> None:
        self._where = where
        self._connection = connection
        self._frames = frames
        self.heard_s = time.monotonic()
        self._texts: list[str] = []
        self._part = ""

    async def send(self, text: str) -> None:
        """Raises `ToolError(NETWORK)`."""
        from wsproto.events import TextMessage

        await self._connection.write(self._frames.send(TextMessage(data=text)))

    async def receive(self, timeout_s: float) -> str | None:
        """The next text; None if none comes in time. Raises `ToolError(NETWORK)`."""
        until_s = time.monotonic() + timeout_s
        while not self._texts:
            left_s = until_s - time.monotonic()
            data = await self._connection.read(left_s) if left_s > 0 else None
            if data is None:
                return None
            self.heard_s = time.monotonic()
            if not data:
                raise WebSocketClosed(self._where)
            await self._take(data)
        return self._texts.pop(0)

    async def _take(self, data: bytes) -> None:
        from wsproto.events import CloseConnection, Ping, TextMessage

        self._frames.receive_data(data)
        for event in self._frames.events():
            if isinstance(event, Ping):
                await self._connection.write(self._frames.send(event.response()))
            elif isinstance(event, CloseConnection):  # also for what is no frame
                raise WebSocketClosed(self._where)
            elif isinstance(event, TextMessage):
                self._add(event.data, event.message_finished)

    def _add(self, text: str, is_finished: bool) -> None:
        self._part += text
        if len(self._part) > MAX_MESSAGE_CHARS:
            raise ToolError(
                ErrorCode.NETWORK, f"{self._where} sent a message over {MAX_MESSAGE_CHARS:,} characters", "Try later."
            )
        if is_finished:
            self._texts.append(self._part)
            self._part = ""


@asynccontextmanager
async def opened(
    exchanges: Exchanges, target: Target, *, is_allowed: bool, timeout_s: float
) -> AsyncGenerator[WebSocket]:
    """Raises `ToolError`."""
    if not can_open():
        raise ToolError(
            ErrorCode.NOT_CONFIGURED, "WebSockets need the extra goat-mcp[slack]", "Install goat-mcp[slack]."
        )
    from wsproto.connection import Connection, ConnectionType

    key = base64.b64encode(secrets.token_bytes(16)).decode()
    headers = {"upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": key}
    async with AsyncExitStack() as stack:
        try:
            with anyio.fail_after(timeout_s):
                upgraded = exchanges.upgraded(target, headers, is_allowed=is_allowed)
                connection = await stack.enter_async_context(upgraded)
        except TimeoutError:
            raise ToolError(
                ErrorCode.NETWORK, f"{target.shown} did not answer within {timeout_s:g} s", "Try again later."
            ) from None
        accepted = base64.b64encode(hashlib.sha1(f"{key}{_GUID}".encode()).digest()).decode()
        if connection.headers.get("sec-websocket-accept") != accepted:
            raise ToolError(ErrorCode.NETWORK, f"{target.shown} does not speak WebSocket", "Try again later.")
        yield WebSocket(target.origin, connection, Connection(ConnectionType.CLIENT))
