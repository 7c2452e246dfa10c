"""The read stream of a stdio upstream: messages that are parsed and not yet taken."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType

import anyio
from mcp.shared.message import SessionMessage

_MAX_QUEUED = 256
"""Messages parsed but not yet taken; past this the pipe is not read, so that a flood stays in the kernel."""


class Inbox:
    """The read stream: messages in arrival order, then the end."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._messages: deque[SessionMessage] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._paused = False
        self._pause, self._resume = pause, resume

    def put(self, message: SessionMessage) -> None:
        self._messages.append(message)
        if len(self._messages) > _MAX_QUEUED and not self._paused:
            self._paused = True
            self._pause()
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> SessionMessage | Exception:
        while not self._messages:
            if self._ended:
                raise anyio.EndOfStream
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        message = self._messages.popleft()
        if self._paused and len(self._messages) < _MAX_QUEUED // 2:
            self._paused = False
            self._resume()
        return message

    def __aiter__(self) -> Inbox:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._messages.clear()
        self.end()

    async def __aenter__(self) -> Inbox:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        await self.aclose()
        return None
