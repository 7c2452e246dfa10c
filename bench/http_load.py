"""Many requests at a time over HTTP with as little client as possible: sockets, fixed bytes, and a count of answers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from bench.wire import HANDSHAKE_PARAMS, MODERN_META, MODERN_REVISION, Era

ANSWER_TIMEOUT_S = 120.0
CONNECTING_AT_A_TIME = 16
_FIRST_ID = 1_000_000
_ID = b"%d" % _FIRST_ID
_READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class HttpFailure(Exception):
    """The server answered something else than the result that was expected."""


class StartTogether:
    """Clients that begin their calls at the same moment. They connect a few at a time, as clients do that are not
    started by one bell, and each calls once: a server may end a connection that says nothing."""

    def __init__(self, clients: int) -> None:
        self.all_ready = asyncio.Barrier(clients)
        self.connecting = asyncio.Semaphore(CONNECTING_AT_A_TIME)


@dataclass(frozen=True)
class HttpLoad:
    """Calls of one tool of one server, all of them alike. An answer is the body of its request's response."""

    host: str
    port: int
    head: bytes
    body: bytes
    """With `_ID` where the id goes: calls of one session must not share one."""
    expected: bytes

    async def run(self, total: int, at_once: int, together: StartTogether | None = None) -> list[float]:
        """Make `total` calls over `at_once` connections, each of which has one call open at any time. Returns how long
        each took, in ms. With `together` all who share it begin at the same moment; the one call that each has made
        before that does not count.

        Raises `HttpFailure` for an answer without the expected bytes, `TimeoutError` for none.
        """

        async def call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
            writer.write(self.head + self.body.replace(_ID, b"%d" % number))
            status, body = await _answer(reader)
            if status != 200 or self.expected not in body:
                raise HttpFailure(f"{self.host}:{self.port} answered {status}: {body[:300]!r}")

        return await _over_connections(self.host, self.port, total, at_once, call, together)


@dataclass(frozen=True)
class SseLoad:
    """The same over the transport of 2024-11-05: an answer is an event of the one stream of the session."""

    host: str
    port: int
    path: str
    body: bytes
    expected: bytes

    async def run(self, total: int, at_once: int, together: StartTogether | None = None) -> list[float]:
        """Open a session, and do as `HttpLoad.run`."""
        async with self._session() as session:

            async def call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
                answer = session.expect(number)
                await session.post(reader, writer, self.body.replace(_ID, b"%d" % number))
                if self.expected not in (event := await answer):
                    raise HttpFailure(f"{self.host}:{self.port} answered {event[:300]!r}")

            return await _over_connections(self.host, self.port, total, at_once, call, together)

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator[_SseSession]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        listening: asyncio.Task[None] | None = None
        try:
            host = f"{self.host}:{self.port}"
            writer.write(f"GET {self.path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            events = _events(reader)
            endpoint = (await anext(events)).decode()
            session = _SseSession(f"POST {endpoint} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n")
            listening = asyncio.create_task(session.listen(events))
            await _over_connections(self.host, self.port, 1, 1, session.open)
            yield session
        finally:
            if listening is not None:
                listening.cancel()
            writer.close()


@dataclass
class _SseSession:
    head: str
    _waiting: dict[int, asyncio.Future[bytes]] = field(default_factory=dict[int, "asyncio.Future[bytes]"])

    def expect(self, number: int) -> Awaitable[bytes]:
        """The event that answers the request of this id."""
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        return answer

    async def post(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes) -> None:
        writer.write(f"{self.head}Content-Length: {len(message)}\r\n\r\n".encode() + message)
        status, body = await _answer(reader)
        if status != 202:
            raise HttpFailure(f"a message was answered with {status}: {body[:300]!r}")

    async def open(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        greeted = self.expect(number)
        opening = {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": HANDSHAKE_PARAMS}
        await self.post(reader, writer, json.dumps(opening).encode())
        await greeted
        await self.post(reader, writer, json.dumps(_READY).encode())

    async def listen(self, events: AsyncGenerator[bytes]) -> None:
        try:
            async for event in events:
                number = json.loads(event).get("id")
                if (waiting := self._waiting.pop(number, None)) is not None:
                    waiting.set_result(event)
        except (OSError, asyncio.IncompleteReadError) as broken:
            for waiting in self._waiting.values():
                waiting.set_exception(HttpFailure(f"the stream of answers broke: {broken}"))


async def _over_connections(
    host: str,
    port: int,
    total: int,
    at_once: int,
    call: Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]],
    together: StartTogether | None = None,
) -> list[float]:
    took_ms: list[float] = []
    ids = iter(range(_FIRST_ID, _FIRST_ID + total))

    async def one_connection() -> None:
        async with together.connecting if together is not None else nullcontext():
            reader, writer = await asyncio.open_connection(host, port)
            if together is not None:
                await call(reader, writer, next(ids))
        try:
            if together is not None:
                await together.all_ready.wait()
            for number in ids:
                if reader.at_eof():  # a server may end a connection that had nothing to do
                    writer.close()
                    reader, writer = await asyncio.open_connection(host, port)
                begun = time.perf_counter()
                await call(reader, writer, number)
                took_ms.append((time.perf_counter() - begun) * 1000)
        finally:
            writer.close()

    async with asyncio.timeout(ANSWER_TIMEOUT_S), asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(one_connection())
    return took_ms


def sse_load(url: str, tool: str, arguments: Mapping[str, object], expected: bytes) -> SseLoad:
    """Prepare the request for a server of the older transport, whose stream is at `url`."""
    parts = urlsplit(url)
    return SseLoad(
        str(parts.hostname),
        parts.port or 80,
        parts.path,
        _body({"name": tool, "arguments": arguments}),
        expected,
    )


def http_load(
    url: str, era: Era, tool: str, arguments: Mapping[str, object], expected: bytes, token: str = ""
) -> HttpLoad:
    """Open a session where the era has them, and prepare the request."""
    parts = urlsplit(url)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if era == "modern":
        params["_meta"] = MODERN_META
        headers |= {"MCP-Protocol-Version": MODERN_REVISION, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    else:
        headers |= _session(str(parts.hostname), parts.port or 80, parts.path, headers)
    body = _body(params)
    headers |= {"Host": parts.netloc, "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    first_line = f"POST {parts.path} HTTP/1.1\r\n"
    return HttpLoad(str(parts.hostname), parts.port or 80, f"{first_line}{head}\r\n".encode(), body, expected)


def _body(params: Mapping[str, object]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": _FIRST_ID, "method": "tools/call", "params": params}).encode()


def _session(host: str, port: int, path: str, headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers of a session that has just been opened."""
    connection = HTTPConnection(host, port, timeout=30)
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE_PARAMS}
    connection.request("POST", path, json.dumps(opening), dict(headers))
    answer = connection.getresponse()
    answer.read()
    session = {"MCP-Protocol-Version": HANDSHAKE_PARAMS["protocolVersion"]}
    if (given := answer.getheader("mcp-session-id")) is not None:
        session["Mcp-Session-Id"] = given
    connection.request("POST", path, json.dumps(_READY), {**headers, **session})
    connection.getresponse().read()
    connection.close()
    return session


async def _events(reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    """The data of each event of a stream that comes in chunks."""
    held = b""
    while True:
        held += await _chunk(reader)
        while b"\n\n" in held:
            event, held = held.split(b"\n\n", 1)
            yield next(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))


async def _chunk(reader: asyncio.StreamReader) -> bytes:
    size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
    return (await reader.readexactly(size + 2))[:-2]


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of one answer, of known length or in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head.split(b" ", 2)[1])
    if b"\r\ncontent-length:" in head:
        length = int(head.split(b"\r\ncontent-length:", 1)[1].split(b"\r\n", 1)[0])
        return status, await reader.readexactly(length)
    body = bytearray()
    while chunk := await _chunk(reader):
        body += chunk
    return status, bytes(body)
