"""The connections to the origin of one HTTP upstream: opened when they are needed, used again, closed when idle.

HTTP/1.1 is httpcore's. Its pool is not used: for each request it looks twice at each connection, and asks the system
about each idle one. Nor are its streams: they wait for a turn of the event loop at each step, and write head and body
apart (design 0019).
"""

from __future__ import annotations

import asyncio
import selectors
import ssl
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, cast

import anyio
import httpcore2
import httpx2

_CONNECT_TIMEOUT_S = 10.0
_KEEP_ALIVE_S = 60.0
_MAX_OPEN = 200
_MAX_IDLE = 50
_HELD_BYTES = 64 * 1024
"""A body beyond that leaves in pieces."""
_UNREAD_BYTES = 256 * 1024
_FAILURES = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError)


class HttpConnections(httpx2.AsyncBaseTransport):
    """`tls` is for origins that want it."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        tls.set_alpn_protocols(["http/1.1"])
        self._tls = tls
        self._idle: list[httpcore2.AsyncHTTP11Connection] = []
        self._busy: set[httpcore2.AsyncHTTP11Connection] = set()
        self._free = asyncio.Semaphore(_MAX_OPEN)
        self._is_closed = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=cast("AsyncIterable[bytes]", request.stream),
            extensions=request.extensions,
        )
        await self._wait_for_room()
        connection = None
        try:
            connection = await self._usable() or await self._opened(sent.url.origin)
            self._busy.add(connection)
            answer = await connection.handle_async_request(sent)
        except BaseException as problem:
            await self.done(connection)
            if isinstance(problem, _FAILURES):
                raise _as_httpx(problem) from problem
            raise
        body = _Body(self, connection, answer)
        return httpx2.Response(answer.status, headers=answer.headers, stream=body)

    async def aclose(self) -> None:
        self._is_closed = True
        for connection in (*self._idle, *self._busy):
            await connection.aclose()

    async def _wait_for_room(self) -> None:
        if not self._free.locked():
            await self._free.acquire()
            return
        try:
            with anyio.fail_after(_CONNECT_TIMEOUT_S):
                await self._free.acquire()
        except TimeoutError:
            raise httpx2.PoolTimeout(f"{_MAX_OPEN} requests are open already") from None

    async def _usable(self) -> httpcore2.AsyncHTTP11Connection | None:
        """The idle one that was used last, if its server has not closed it."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return None

    async def _opened(self, origin: httpcore2.Origin) -> httpcore2.AsyncHTTP11Connection:
        host, is_plain = origin.host.decode("ascii"), origin.scheme == b"http"
        try:
            with anyio.fail_after(_CONNECT_TIMEOUT_S):
                _, stream = await asyncio.get_running_loop().create_connection(
                    SocketStream,
                    host,
                    origin.port,
                    ssl=None if is_plain else self._tls,
                    server_hostname=None if is_plain else host,
                    ssl_shutdown_timeout=None if is_plain else 1.0,
                    happy_eyeballs_delay=0.25,
                )
        except TimeoutError:
            raise httpx2.ConnectTimeout(f"no connection within {_CONNECT_TIMEOUT_S:g} s") from None
        except OSError as problem:
            raise httpx2.ConnectError(str(problem)) from problem
        return httpcore2.AsyncHTTP11Connection(origin, stream, _KEEP_ALIVE_S)

    async def done(self, connection: httpcore2.AsyncHTTP11Connection | None) -> None:
        """A request is over; this connection was its own."""
        self._free.release()
        if connection is None:
            return
        self._busy.discard(connection)
        if connection.is_idle() and len(self._idle) < _MAX_IDLE and not self._is_closed:
            self._idle.append(connection)
        else:
            await connection.aclose()


class _Body(httpx2.AsyncByteStream):
    """A response's body. Closed, it gives its connection back."""

    def __init__(
        self, connections: HttpConnections, connection: httpcore2.AsyncHTTP11Connection, answer: httpcore2.Response
    ) -> None:
        self._connections = connections
        self._connection = connection
        self._stream: Any = answer.stream
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        except _FAILURES as problem:
            raise _as_httpx(problem) from problem

    async def aclose(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        with anyio.CancelScope(shield=True):
            try:
                await self._stream.aclose()
            finally:
                await self._connections.done(self._connection)


class SocketStream(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """One socket. What is written leaves when the answer is waited for: head and body in one call of the system."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._unsent = bytearray()
        self._unread = bytearray()
        self._readable: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_over = False
        self._broken: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if len(self._unread) > _UNREAD_BYTES and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._is_over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        if exc is not None:
            self._broken = str(exc) or type(exc).__name__
        self._writable.set()
        self._wake()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _wake(self) -> None:
        if self._readable is not None and not self._readable.done():
            self._readable.set_result(None)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        assert self._transport is not None
        if self._unsent:
            await self._send(timeout)
        if not self._unread and not self._is_over:
            await self._wait(timeout)
        if not self._unread and self._broken is not None:
            raise httpcore2.ReadError(self._broken)
        data = bytes(self._unread[:max_bytes])
        del self._unread[:max_bytes]
        if data and not self._unread and not self._is_over:
            self._transport.resume_reading()
        return data

    async def _wait(self, timeout: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._readable = loop.create_future()
        timer = loop.call_later(timeout, self._wake) if timeout is not None else None
        try:
            await self._readable
        finally:
            self._readable = None
            if timer is not None:
                timer.cancel()
        if not self._unread and not self._is_over:
            raise httpcore2.ReadTimeout

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._unsent += buffer
        if len(self._unsent) > _HELD_BYTES:
            await self._send(timeout)

    async def _send(self, timeout: float | None) -> None:
        """Hand over what was written. A server may close before it has read all, and still have answered."""
        assert self._transport is not None
        unsent, self._unsent = bytes(self._unsent), bytearray()
        if not self._transport.is_closing():
            self._transport.write(unsent)
        if not self._writable.is_set():
            try:
                with anyio.fail_after(timeout):
                    await self._writable.wait()
            except TimeoutError:
                raise httpcore2.WriteTimeout from None

    async def aclose(self) -> None:
        self._broken = self._broken or "the connection was closed"
        if self._transport is not None:
            self._transport.close()

    def _has_more(self) -> bool:
        """Whether something has come that the event loop has not seen yet."""
        if self._transport is None or self._transport.is_closing():
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(self._transport.get_extra_info("socket"), selectors.EVENT_READ)
            return bool(selector.select(0))

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # as far as a connection without a request goes: its server has closed it
            return self._is_over or bool(self._unread) or self._has_more()
        return None if self._transport is None else self._transport.get_extra_info(info)


def _as_httpx(problem: Exception) -> httpx2.TransportError:
    """The exception of the same name, which those above know."""
    kind = getattr(httpx2, type(problem).__name__, httpx2.NetworkError)
    return cast("httpx2.TransportError", kind(str(problem)))
