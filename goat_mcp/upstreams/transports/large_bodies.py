"""Large answers over HTTP, parsed in steps before the SDK sees them: it parses each in one go, which all wait for.

What it sees instead is a short answer with the same id; who made the request gets the large one for it.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import Any

import httpx2
from pydantic_core import to_json

from goat_mcp.upstreams.transports.full_collections import full_collections
from goat_mcp.upstreams.transports.json_parts import JsonParts
from goat_mcp.upstreams.transports.large_blocks import LARGE_BYTES
from goat_mcp.upstreams.transports.large_frame import parsed_in_steps

_MARK = "goat-mcp/large"
_LINE_END = re.compile(rb"[\r\n]")
_DATA = b"data:"
_ANSWER = re.compile(rb"data: ?\{")
_BEGIN_BYTES = 7
_PASSED_BYTES = 64 * 1024


class LargeAnswers:
    """Of one link: those that came and were not taken yet."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(16)
        self._awaited: set[int] = set()
        self._kept: dict[int, dict[str, Any]] = {}

    @contextmanager
    def awaiting(self, request_id: int) -> Generator[None]:
        """Somebody wants the answer to this request, until the block ends."""
        self._awaited.add(request_id)
        try:
            yield
        finally:
            self._awaited.discard(request_id)
            self._kept.pop(request_id, None)

    def whole(self, request_id: int, result: dict[str, Any]) -> dict[str, Any]:
        """The result that this one stands for; the same where it stands for itself."""
        return self._kept.pop(request_id, result) if result.get(_MARK) == self._token else result

    async def shortened(self, text: bytes | bytearray) -> bytes:
        """What the SDK is to see of it: the text itself where that is no answer somebody waits for."""
        try:
            frame: Any = await self._parsed(text)
        except ValueError:
            return bytes(text)  # it says what is wrong, as of any answer
        match frame:
            case {"jsonrpc": "2.0", "id": int() as request_id, "result": {}} if (
                request_id in self._awaited and not frame.keys() & {"method", "error"}
            ):
                self._kept[request_id] = frame["result"]
                return to_json({"jsonrpc": "2.0", "id": request_id, "result": {_MARK: self._token}})
            case _:
                return bytes(text)

    async def _parsed(self, text: bytes | bytearray) -> Any:
        full_collections().put_off()
        steps = parsed_in_steps(text, JsonParts().loads)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                full_collections().put_off()
                return done.value
            await asyncio.sleep(0)


class LargeBody(httpx2.AsyncByteStream):
    """A body of one JSON text."""

    def __init__(self, body: httpx2.AsyncByteStream, answers: LargeAnswers) -> None:
        self._body = body
        self._answers = answers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held = bytearray()
        async for chunk in self._body:
            held += chunk
        yield bytes(held) if len(held) < LARGE_BYTES else await self._answers.shortened(held)

    async def aclose(self) -> None:
        await self._body.aclose()


class LargeEvents(httpx2.AsyncByteStream):
    """A stream of events, each of whose texts is on one line, as far as it is large."""

    def __init__(self, body: httpx2.AsyncByteStream, answers: LargeAnswers, max_line_bytes: int) -> None:
        self._body = body
        self._answers = answers
        self._max_line_bytes = max_line_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held = bytearray()
        is_passed_on = False
        async for chunk in self._body:
            found = _LINE_END.search(chunk)
            part = chunk[: found.start()] if found is not None else chunk
            if is_passed_on:
                yield part
            else:
                held += part
                if found is not None:
                    yield await self._line(held)
                elif not self._may_be_answer(held):
                    is_passed_on = True
                    for at in range(0, len(held), _PASSED_BYTES):
                        yield bytes(held[at : at + _PASSED_BYTES])
            if found is not None:
                rest = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
                yield chunk[found.start() : rest]
                held, is_passed_on = bytearray(chunk[rest:]), False
        if not is_passed_on:
            yield bytes(held)

    def _may_be_answer(self, begun: bytearray) -> bool:
        """Whether a line that begins so is kept until it ends. What is larger than an event may be, the SDK refuses."""
        return len(begun) < _BEGIN_BYTES or (len(begun) <= self._max_line_bytes and _ANSWER.match(begun) is not None)

    async def _line(self, line: bytearray) -> bytes:
        if len(line) < LARGE_BYTES or not line.startswith(_DATA):
            return bytes(line)
        return _DATA + await self._answers.shortened(line[len(_DATA) :])

    async def aclose(self) -> None:
        await self._body.aclose()
