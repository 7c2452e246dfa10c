"""WebSockets of ours: under the rules of all requests, and what a server may do to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, Ping, Request, TextMessage

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.web.http import HttpClient, HttpOptions
from goat_mcp.web.http import websocket as websocket_module
from goat_mcp.web.http.websocket import WebSocket, WebSocketClosed
from tests.web.messaging.wire_server import Asked, Said, answering

pytestmark = pytest.mark.anyio

WAIT_S = 5.0
Serve = Callable[[WSConnection, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def socket_to(serve: Serve) -> AsyncGenerator[WebSocket]:
    async with answering(lambda asked: Said(b"", "404 Not Found")) as wire:

        async def upgrade(asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            frames = WSConnection(ConnectionType.SERVER)
            frames.receive_data(wire.raw[-1])
            assert [type(event) for event in frames.events()] == [Request]
            writer.write(frames.send(AcceptConnection()))
            await serve(frames, reader, writer)
            await writer.drain()
            writer.close()

        wire.upgrade = upgrade
        place = f"ws://127.0.0.1:{wire.port}/link?ticket=1"
        async with HttpClient(HttpOptions()).websocket(place, allow_hosts=[f"127.0.0.1:{wire.port}"]) as socket:
            yield socket


async def test_texts_go_both_ways_in_pieces_and_between_pings() -> None:
    heard: list[str] = []

    async def serve(frames: WSConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        one = frames.send(TextMessage(data="Grü", message_finished=False)) + frames.send(Ping())
        one += (
            frames.send(TextMessage(data="ße")) + frames.send(BytesMessage(data=b"x")) + frames.send(TextMessage("2"))
        )
        for at in range(0, len(one), 3):
            writer.write(one[at : at + 3])
            await writer.drain()
        while not heard:
            frames.receive_data(await reader.read(1000))
            heard.extend(event.data for event in frames.events() if isinstance(event, TextMessage))

    async with socket_to(serve) as socket:
        texts = [await socket.receive(WAIT_S), await socket.receive(WAIT_S)]
        await socket.send("ack 🐐")
        with pytest.raises(WebSocketClosed):
            await socket.receive(WAIT_S)

    assert (texts, heard) == (["Grüße", "2"], ["ack 🐐"])


async def test_silence_is_no_text() -> None:
    async def serve(frames: WSConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)

    async with socket_to(serve) as socket:
        assert await socket.receive(0.05) is None


async def test_a_message_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_module, "MAX_MESSAGE_CHARS", 10_000)

    async def serve(frames: WSConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(20):
            writer.write(frames.send(TextMessage(data="x" * 1000, message_finished=False)))

    async with socket_to(serve) as socket:
        with pytest.raises(ToolError, match="over 10,000 characters"):
            await socket.receive(WAIT_S)


async def test_what_is_no_frame_ends_it() -> None:
    async def serve(frames: WSConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\xff" * 40)

    async with socket_to(serve) as socket:
        with pytest.raises(WebSocketClosed):
            await socket.receive(WAIT_S)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (Said(b"no", "200 OK"), r"does not change to the protocol that is wanted \(HTTP 200\)"),
        (Said(b"", "302 Found", {"Location": "ws://127.0.0.1:1/"}), r"\(HTTP 302\)"),
        (
            Said(b"", "101 Switching Protocols", {"Upgrade": "websocket", "Sec-WebSocket-Accept": "forged"}),
            "does not speak WebSocket",
        ),
    ],
)
async def test_a_server_that_does_not_speak_it_is_refused(said: Said, problem: str) -> None:
    async with answering(lambda asked: said) as wire:
        client = HttpClient(HttpOptions())
        with pytest.raises(ToolError, match=problem):
            async with client.websocket(f"ws://127.0.0.1:{wire.port}/", allow_hosts=["127.0.0.1"]):
                pass


@pytest.mark.parametrize("url", ["ws://127.0.0.1:9/x", "wss://127.0.0.1:9/x", "wss://10.0.0.1/", "file:///etc/passwd"])
async def test_no_private_address_is_dialled(url: str) -> None:  # R-NET-2, R-NET-4
    with pytest.raises(ToolError) as refused:
        async with HttpClient(HttpOptions()).websocket(url):
            pass

    assert refused.value.code is ErrorCode.ADDRESS


async def test_plain_ws_is_for_hosts_that_the_user_named() -> None:
    with pytest.raises(ToolError, match="plain http is refused"):
        async with HttpClient(HttpOptions()).websocket("ws://example.org/"):
            pass
