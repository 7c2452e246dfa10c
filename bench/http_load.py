"""Many requests at a time over HTTP with as little client as possible: sockets, fixed bytes, and a count of answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from bench.wire import HANDSHAKE_PARAMS, MODERN_META, MODERN_REVISION, Era

ANSWER_TIMEOUT_S = 120.0
_FIRST_ID = 1_000_000
_ID = b"%d" % _FIRST_ID


class HttpFailure(Exception):
    """The server answered something else than the result that was expected."""


@dataclass(frozen=True)
class HttpLoad:
    """Calls of one tool of one server, all of them alike."""

    host: str
    port: int
    head: bytes
    body: bytes
    """With `_ID` where the id goes: calls of one session must not share one."""
    expected: bytes

    async def run(self, total: int, at_once: int) -> None:
        """Make `total` calls over `at_once` connections, each of which has one call open at any time.

        Raises `HttpFailure` for an answer without the expected bytes, `TimeoutError` for none.
        """
        ids = iter(range(_FIRST_ID, _FIRST_ID + total))

        async def one_connection() -> None:
            reader, writer = await asyncio.open_connection(self.host, self.port)
            try:
                for number in ids:
                    writer.write(self.head + self.body.replace(_ID, b"%d" % number))
                    status, body = await _answer(reader)
                    if status != 200 or self.expected not in body:
                        raise HttpFailure(f"{self.host}:{self.port} answered {status}: {body[:300]!r}")
            finally:
                writer.close()

        async with asyncio.timeout(ANSWER_TIMEOUT_S), asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(one_connection())


def http_load(url: str, era: Era, tool: str, arguments: Mapping[str, object], expected: bytes) -> HttpLoad:
    """Open a session where the era has them, and prepare the request."""
    parts = urlsplit(url)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if era == "modern":
        params["_meta"] = MODERN_META
        headers |= {"MCP-Protocol-Version": MODERN_REVISION, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    else:
        headers |= _session(str(parts.hostname), parts.port or 80, parts.path, headers)
    body = json.dumps({"jsonrpc": "2.0", "id": _FIRST_ID, "method": "tools/call", "params": params}).encode()
    headers |= {"Host": parts.netloc, "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    first_line = f"POST {parts.path} HTTP/1.1\r\n"
    return HttpLoad(str(parts.hostname), parts.port or 80, f"{first_line}{head}\r\n".encode(), body, expected)


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
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    connection.request("POST", path, json.dumps(ready), {**headers, **session})
    connection.getresponse().read()
    connection.close()
    return session


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of one answer, of known length or in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head.split(b" ", 2)[1])
    if b"\r\ncontent-length:" in head:
        length = int(head.split(b"\r\ncontent-length:", 1)[1].split(b"\r\n", 1)[0])
        return status, await reader.readexactly(length)
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return status, bytes(body)
