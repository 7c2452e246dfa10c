"""One connection of a sandboxed program through our proxy: its request parsed strictly, then its bytes relayed.

What two parsers could read differently is refused. Whether a host may be reached is decided in `domain_proxy`.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass

from goat_mcp.core.errors import ToolError
from goat_mcp.web.http.target import Target, parse_target

MAX_HEAD_BYTES = 64 * 1024
_REQUEST_LINE = re.compile(rb"([A-Z]{1,20}) ([!-~]{1,8000}) HTTP/1\.[01]\Z")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00\r\n]*?)[ \t]*\Z")
_LENGTH = re.compile(rb"[0-9]{1,18}\Z")
_OF_THE_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te", b"trailer", b"upgrade", b"host")
)


class BadRequest(ValueError):
    """Invalid or ambiguous; the message says why."""


@dataclass(frozen=True)
class ProxyRequest:
    """`CONNECT` (`is_tunnel`), or a plain HTTP request with a whole URL. `password` is from its credentials.

    For a plain request, `head` is what the server gets, for this one target and this one request. `body_bytes` follow,
    or chunks if it is None.
    """

    target: Target
    is_tunnel: bool
    password: str
    head: bytes = b""
    body_bytes: int | None = 0


def read_request(head: bytes) -> ProxyRequest:
    """From the bytes up to the empty line. Raises `BadRequest`."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    line = _REQUEST_LINE.match(first)
    if line is None:
        raise BadRequest("this is no request line of HTTP/1.1")
    method, asked = line[1], line[2].decode("ascii")
    headers: list[tuple[bytes, bytes]] = []
    for text in lines:
        header = _HEADER.match(text)
        if header is None:
            raise BadRequest("a header cannot be read")
        headers.append((header[1], header[2]))
    values = {name.lower(): value for name, value in headers}
    if len([name for name, _ in headers if name.lower() in (b"content-length", b"transfer-encoding")]) > 1:
        raise BadRequest("the length of the body is given twice")
    password = _password(values.get(b"proxy-authorization", b""))
    if method == b"CONNECT":
        return ProxyRequest(_request_target(f"https://{asked}", "CONNECT wants host:port"), True, password)
    target = _request_target(asked, "a proxy wants a whole URL")
    if target.scheme != "http":
        raise BadRequest("for https use CONNECT")
    # One request for each connection: what came next could be for anybody.
    kept = [(name, value) for name, value in headers if name.lower() not in _OF_THE_CONNECTION]
    new_lines = [
        b"%s %s HTTP/1.1" % (method, target.path.encode("ascii")),
        b"Host: %s" % target.authority.encode("ascii"),
        *(b"%s: %s" % pair for pair in kept),
        b"Connection: close",
    ]
    return ProxyRequest(target, False, password, b"\r\n".join(new_lines) + b"\r\n\r\n", _body_bytes(values))


def _request_target(url: str, wanted: str) -> Target:
    try:
        target = parse_target(url)
    except ToolError as problem:
        raise BadRequest(f"{wanted}; {problem.message}") from None
    if url.startswith("https://") and target.path != "/":
        raise BadRequest(wanted)
    return target


def _body_bytes(values: Mapping[bytes, bytes]) -> int | None:
    coding = values.get(b"transfer-encoding")
    if coding is not None:
        if coding.lower() != b"chunked":
            raise BadRequest("a body comes with its length, or in chunks")
        return None
    length = values.get(b"content-length", b"0")
    if not _LENGTH.match(length):
        raise BadRequest("the length of the body is no number")
    return int(length)


def _password(credentials: bytes) -> str:
    kind, _, encoded = credentials.partition(b" ")
    if kind.lower() != b"basic":
        return ""
    try:
        return base64.b64decode(encoded, validate=True).decode("ascii").partition(":")[2]
    except ValueError:
        return ""


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_PIECE_BYTES = 64 * 1024
_LAST_BYTES_S = 10.0
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n]*)?\r\n\Z")


class Relay:
    """Bytes between a sandboxed program and a server, until one of them ends or both are idle. Ends both sides."""

    def __init__(self, client: Stream, upstream: Stream, idle_s: float) -> None:
        self._client, self._upstream = client, upstream
        self._idle_s = idle_s
        self._loop = asyncio.get_running_loop()
        self._last_s = self._loop.time()

    async def tunnel(self) -> None:
        """All bytes, both ways."""
        self._client[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await self._run(self._copy(self._client[0], self._upstream[1]))

    async def one_request(self, request: ProxyRequest) -> None:
        """A plain request, its body and the answer. What the program sends afterwards is ignored."""
        self._upstream[1].write(request.head)
        await self._run(self._body(request.body_bytes), ends_with_answer=True)

    async def _run(self, sent: Coroutine[None, None, None], *, ends_with_answer: bool = False) -> None:
        try:
            async with asyncio.TaskGroup() as both:
                sending = both.create_task(sent)
                await self._copy(self._upstream[0], self._client[1])
                if ends_with_answer:
                    sending.cancel()
        except* (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # one side has gone, or both are idle: the end of the connection tells the other
        finally:
            await self._end()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await self._read(reader, _PIECE_BYTES):
            await self._write(writer, piece)
        if writer.can_write_eof():
            writer.write_eof()

    async def _body(self, length: int | None) -> None:
        reader, writer = self._client[0], self._upstream[1]
        if length is not None:
            await self._exactly(length)
            return
        while True:
            line = await reader.readuntil(b"\r\n")
            # The size as we have read it, without what else may stand in the line.
            size = _chunk_size(line)
            await self._write(writer, b"%x\r\n" % size)
            if size == 0:
                await self._write(writer, b"\r\n")
                return
            await self._exactly(size)
            if await reader.readexactly(2) != b"\r\n":
                raise OSError("a chunk is longer than it says")
            await self._write(writer, b"\r\n")

    async def _exactly(self, length: int) -> None:
        while length > 0:
            piece = await self._read(self._client[0], min(length, _PIECE_BYTES))
            if not piece:
                raise OSError("the body is shorter than it says")
            length -= len(piece)
            await self._write(self._upstream[1], piece)

    async def _read(self, reader: asyncio.StreamReader, most: int) -> bytes:
        """The next bytes; empty at the end. Waits as long as the other direction moves."""
        while True:
            left_s = self._last_s + self._idle_s - self._loop.time()
            if left_s <= 0:
                raise TimeoutError("nothing has moved")
            try:
                async with asyncio.timeout(left_s):
                    piece = await reader.read(most)
            except TimeoutError:
                continue
            self._last_s = self._loop.time()
            return piece

    async def _write(self, writer: asyncio.StreamWriter, piece: bytes) -> None:
        writer.write(piece)
        async with asyncio.timeout(self._idle_s):
            await writer.drain()
        self._last_s = self._loop.time()

    async def _end(self) -> None:
        """Bytes under way shall arrive, but a side that does not read them is not waited for long."""
        writers = (self._client[1], self._upstream[1])
        for writer in writers:
            writer.close()
        try:
            async with asyncio.timeout(_LAST_BYTES_S):
                await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)
        finally:
            for writer in writers:
                writer.transport.abort()


def _chunk_size(line: bytes) -> int:
    size = _CHUNK_SIZE.match(line)
    if size is None:
        raise OSError("a chunk does not say its size")
    return int(size[1], 16)
