"""A web server on 127.0.0.1 that answers each path with the bytes a test gives it, and remembers who asked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

Write = Callable[[asyncio.StreamWriter], Awaitable[None]]
Answer = bytes | Write
_PIECE_BYTES = 256 * 1024
"""Large answers go out bit by bit, so that a test may measure what the client's side takes of this process."""


@dataclass
class LocalServer:
    """`answers` by path without query; any other path is a 404. `requests` are the heads that came in."""

    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    requests: list[bytes] = field(default_factory=list[bytes])
    connections: int = 0
    port: int = 0

    @property
    def paths(self) -> list[str]:
        return [head.split(b" ")[1].decode("latin-1") for head in self.requests]

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head)
            length = _content_length(head)
            if length:
                self.requests[-1] += await reader.readexactly(length)
            path = head.split(b" ")[1].decode("latin-1").partition("?")[0]
            answer = self.answers.get(path, page("no such page", status="404 Not Found"))
            if isinstance(answer, bytes):
                for start in range(0, len(answer), _PIECE_BYTES):
                    writer.write(answer[start : start + _PIECE_BYTES])
                    await writer.drain()
            else:
                await answer(writer)
            await writer.drain()
        with suppress(ConnectionError, ssl.SSLError):
            writer.close()
            await writer.wait_closed()


def page(
    body: str | bytes = "hello",
    *,
    content_type: str = "text/html; charset=utf-8",
    status: str = "200 OK",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """A whole answer with a length."""
    data = body.encode() if isinstance(body, str) else body
    lines = {"Content-Type": content_type, "Content-Length": str(len(data)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + data


def redirect(location: str, status: str = "302 Found") -> bytes:
    return page(b"", status=status, headers={"Location": location})


@asynccontextmanager
async def serving(
    answers: Mapping[str, Answer] | None = None, *, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[LocalServer]:
    local = LocalServer(dict(answers or {}))
    server = await asyncio.start_server(local.handle, "127.0.0.1", 0, ssl=tls)
    local.port = server.sockets[0].getsockname()[1]
    try:
        yield local
    finally:
        server.close()


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
