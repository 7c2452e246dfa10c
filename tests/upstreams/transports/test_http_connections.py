"""The connections to one origin: when they are used again, and what their end means."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import httpx2
import pytest

from goat_mcp.upstreams.transports.http_connections import HttpConnections

pytestmark = pytest.mark.anyio
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
WAIT_S = 30.0


def connections() -> HttpConnections:
    return HttpConnections(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


@dataclass
class Server:
    """Answers requests with these by turns. After an empty one, or one that ends with "...", it closes."""

    answers: list[bytes]
    url: str = ""
    connections: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])
    reads: list[bytes] = field(default_factory=list[bytes])
    held: asyncio.Event = field(default_factory=asyncio.Event)
    """Answers wait for it."""
    body: bytes = b""
    """Of the last request."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        while read := await reader.read(1 << 16):
            self.reads.append(read)
            head, _, body = read.partition(b"\r\n\r\n")
            length = next((int(line[16:]) for line in head.lower().split(b"\r\n") if line[:14] == b"content-length"), 0)
            self.body = body + await reader.readexactly(length - len(body))
            await self.held.wait()
            writer.write(answer := self.answers.pop(0))
            if not answer or answer.endswith(b"..."):
                break
        writer.close()


@asynccontextmanager
async def served(*answers: bytes) -> AsyncGenerator[tuple[Server, httpx2.AsyncClient]]:
    server = Server(list(answers))
    server.held.set()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
    async with httpx2.AsyncClient(transport=connections(), timeout=WAIT_S) as client:
        yield server, client
    listener.close()
    for writer in server.connections:
        writer.close()


async def test_a_connection_is_used_again_and_head_and_body_leave_together() -> None:
    async with served(OK, OK) as (server, client):
        for _ in range(2):
            assert (await client.post(server.url, content=b"body")).text == "ok"

    assert len(server.connections) == 1
    assert [read.endswith(b"\r\n\r\nbody") for read in server.reads] == [True, True]


async def test_requests_at_one_time_have_connections_of_their_own() -> None:
    async with served(OK, OK, OK) as (server, client):
        server.held.clear()
        async with anyio.create_task_group() as group:
            group.start_soon(client.get, server.url)
            group.start_soon(client.get, server.url)
            with anyio.fail_after(WAIT_S):
                while len(server.reads) < 2:  # noqa: ASYNC110  # bounded
                    await anyio.sleep(0.01)
            server.held.set()
        await client.get(server.url)

    assert len(server.connections) == 2


async def test_one_that_its_server_has_closed_is_not_used_again() -> None:
    async with served(OK, OK) as (server, client):
        await client.get(server.url)
        server.connections[0].close()
        await server.connections[0].wait_closed()

        assert (await client.get(server.url)).text == "ok"
        assert len(server.connections) == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok...", httpx2.RemoteProtocolError),
        (b"no HTTP...", httpx2.RemoteProtocolError),
    ],
)
async def test_an_answer_that_breaks_off_is_an_error_and_hurts_no_other(answer: bytes, error: type[Exception]) -> None:
    async with served(answer, OK) as (server, client):
        with pytest.raises(error):
            await client.get(server.url)

        assert (await client.get(server.url)).text == "ok"


async def test_nobody_there_is_a_connection_error() -> None:
    async with served() as (server, client):
        pass
    async with httpx2.AsyncClient(transport=connections()) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(server.url)


async def test_silence_is_a_time_out() -> None:
    async with served(OK) as (server, client):
        server.held.clear()
        with pytest.raises(httpx2.ReadTimeout):
            await client.get(server.url, timeout=0.05)
        server.held.set()


async def test_a_cancelled_request_closes_its_connection() -> None:
    async with served(OK) as (server, client):
        server.held.clear()
        with anyio.move_on_after(0.1):
            await client.get(server.url)
        with anyio.fail_after(WAIT_S):
            while not server.reads or not server.connections[0].transport.is_closing():  # bounded
                server.held.set()
                await anyio.sleep(0.01)


async def test_large_bodies_pass_whole_both_ways() -> None:
    body = b"x" * 3_000_000
    async with served(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body) as (server, client):
        answer = await client.post(server.url, content=body)

    assert server.body == body
    assert answer.content == body
