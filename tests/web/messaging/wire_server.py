"""A web server on 127.0.0.1 whose answers depend on what is asked. Bodies are read as JSON, a form, or multipart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qsl, unquote


@dataclass(frozen=True)
class Asked:
    """One request. `path` is decoded and has no query; `fields` are the query's and the body's."""

    method: str
    path: str
    headers: Mapping[str, str]
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Said:
    """One answer."""

    body: bytes
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


def json_said(value: Any, status: str = "200 OK", **headers: str) -> Said:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Said(json.dumps(value).encode(), status, {"Content-Type": "application/json", **named})


@dataclass
class WireServer:
    """`asked` are all requests; `raw` their bytes. `upgrade` takes over a connection that becomes a WebSocket."""

    answer: Callable[[Asked], Said | Awaitable[Said]]
    upgrade: Callable[[Asked, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] | None = None
    asked: list[Asked] = field(default_factory=list[Asked])
    raw: list[bytes] = field(default_factory=list[bytes])
    connections: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.raw.append(head + body)
            method, target, _ = first.split(" ")
            path, _, query = target.partition("?")
            asked = Asked(method, unquote(path), headers, {**dict(parse_qsl(query)), **_fields(headers, body)})
            self.asked.append(asked)
            if self.upgrade is not None and "upgrade" in headers:
                await self.upgrade(asked, reader, writer)
                return
            answered = self.answer(asked)
            said = answered if isinstance(answered, Said) else await answered
            more = "".join(f"{name}: {value}\r\n" for name, value in said.headers.items())
            length = f"Content-Length: {len(said.body)}\r\nConnection: close\r\n"
            writer.write(f"HTTP/1.1 {said.status}\r\n{more}{length}\r\n".encode() + said.body)
            await writer.drain()
        with suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()


@asynccontextmanager
async def answering(answer: Callable[[Asked], Said | Awaitable[Said]]) -> AsyncGenerator[WireServer]:
    wire = WireServer(answer)
    server = await asyncio.start_server(wire.handle, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()


def _fields(headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    kind = headers.get("content-type", "")
    if kind.startswith("application/json"):
        return json.loads(body or b"{}")
    if kind.startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(body.decode(), keep_blank_values=True))
    if kind.startswith("multipart/form-data"):
        message = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body)
        parts: list[Any] = message.get_payload()  # pyright: ignore[reportAssignmentType]  # of multipart it is a list
        return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts}
    return {}
