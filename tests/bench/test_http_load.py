"""The small HTTP client of measurements: when it calls, and what it does if a connection is ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from bench.http_load import StartTogether, http_load, sse_load

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Server:
    """Answers every request alike."""

    def __init__(self) -> None:
        self.connected = 0
        self.connected_at_requests: list[int] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connected += 1
        while head := await _head(reader):
            await _body(reader, head)
            self.connected_at_requests.append(self.connected)
            writer.write(ANSWER)
        writer.close()


class EventServer:
    """Answers by events, and ends the connection of a call before it answers that."""

    def __init__(self) -> None:
        self.ended = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            if head.startswith(b"GET"):
                self._stream = writer
                writer.write(STREAM + _chunk("/messages"))
                continue
            message = json.loads(await _body(reader, head))
            writer.write(ACCEPTED)
            if message["method"] == "tools/call":
                writer.close()
                await writer.wait_closed()
                self.ended += 1
            if "id" in message:
                self._stream.write(_chunk(json.dumps({"id": message["id"], "result": "hello"})))
            if message["method"] == "tools/call":
                return
        writer.close()


def _chunk(data: str) -> bytes:
    event = f"data: {data}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(event), event)


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    return await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


def _run(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    use: Callable[[str], Awaitable[list[float]]],
) -> list[float]:
    async def main() -> list[float]:
        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        async with listening, asyncio.timeout(20):
            return await use(f"http://127.0.0.1:{port}/mcp")

    return asyncio.run(main())


def test_a_connection_that_the_server_ended_is_opened_again() -> None:
    server = EventServer()

    async def one_by_one(url: str) -> list[float]:
        return await sse_load(url, "echo", {}, b"hello").run(3, 1)

    took_ms = _run(server.serve, one_by_one)

    assert len(took_ms) == 3
    assert all(one > 0 for one in took_ms)
    assert server.ended == 3


def test_clients_that_call_together_are_all_connected_before_the_first_call() -> None:
    server = Server()

    async def together(url: str) -> list[float]:
        start = StartTogether(5)
        load = http_load(url, "modern", "echo", {}, b"hello")

        async def late() -> list[float]:
            while server.connected < 4:  # noqa: ASYNC110  # bounded by the timeout around it
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)  # the others would call now
            return await load.run(3, 1, start)

        await asyncio.gather(*(load.run(3, 1, start) for _ in range(4)), late())
        return []

    _run(server.serve, together)

    first_of_each, counted = server.connected_at_requests[:5], server.connected_at_requests[5:]
    assert max(first_of_each) == 5
    assert counted == [5] * 10
