"""Large answers over HTTP: whoever asked gets them whole, and others have their turns while they are read. ISO-1."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from goat_mcp.upstreams.transports.large_blocks import LARGE_BYTES
from goat_mcp.upstreams.transports.large_bodies import LargeAnswers, LargeBody, LargeEvents
from tests.upstreams.fleet import fleet, warm
from tests.upstreams.test_http_upstreams import LISTED, answered, body_of, canned_server, entry, response

pytestmark = pytest.mark.anyio

CHUNK_BYTES = 50_000
ROWS = {"rows": [{"id": number, "name": f"n{number}", "half": "\ud83d"} for number in range(40_000)]}
MAX_WAIT_S = 60.0


class Chunks(httpx2.AsyncByteStream):
    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self._body), CHUNK_BYTES):
            yield self._body[at : at + CHUNK_BYTES]


def answer(result: Any, **members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "result": result, **members}).encode()


async def read(body: httpx2.AsyncByteStream) -> bytes:
    return b"".join([chunk async for chunk in body])


async def test_a_large_answer_is_short_for_the_sdk_and_whole_for_who_asked() -> None:
    answers = LargeAnswers()

    with answers.awaiting(7):
        seen = json.loads(await read(LargeBody(Chunks(answer(ROWS)), answers)))
        whole = answers.whole(7, seen["result"])

    assert len(answer(ROWS)) > LARGE_BYTES
    assert (seen["jsonrpc"], seen["id"], len(seen)) == ("2.0", 7, 3)
    assert len(json.dumps(seen)) < 200
    assert whole == ROWS


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_so_it_is_among_events_and_the_others_stay_as_they_are(end: bytes) -> None:
    answers = LargeAnswers()
    before = b": hello" + end + b"event: message" + end + b'data: {"small": 1}' + end * 2 + b"id: 3" + end
    after = end * 2 + b"data: last" + end * 2 + b"data: cut"

    with answers.awaiting(7):
        seen = await read(LargeEvents(Chunks(before + b"data: " + answer(ROWS) + after), answers, 1 << 24))
        short = seen.removeprefix(before).removesuffix(after)
        whole = answers.whole(7, json.loads(short.removeprefix(b"data:"))["result"])

    assert seen.startswith(before) and seen.endswith(after)
    assert len(short) < 200
    assert whole == ROWS


@pytest.mark.parametrize(
    "body",
    [
        answer({"a": 1}),
        answer(ROWS)[:-1],
        answer(ROWS, method="m"),
        answer(ROWS, error={"code": 1}),
        answer(ROWS, id="7"),
        answer(ROWS, id=8),
        answer(ROWS["rows"]),
        b'data: "' + b"x" * LARGE_BYTES,
    ],
    ids=["small", "broken", "request", "error", "text as id", "not awaited", "no object", "no frame"],
)
async def test_what_is_no_large_answer_to_a_request_passes_as_it_is(body: bytes) -> None:
    answers = LargeAnswers()

    with answers.awaiting(7):
        assert await read(LargeBody(Chunks(body), answers)) == body
        assert await read(LargeEvents(Chunks(b"data: " + body), answers, 1 << 24)) == b"data: " + body
        assert await read(LargeEvents(Chunks(b"data: " + body), answers, LARGE_BYTES // 2)) == b"data: " + body


async def test_an_upstream_cannot_name_an_answer_that_is_kept() -> None:
    answers = LargeAnswers()
    forged = {"goat-mcp/large": "guessed"}

    with answers.awaiting(7):
        await read(LargeBody(Chunks(answer(ROWS)), answers))
        assert answers.whole(7, forged) is forged


async def test_others_have_their_turns_while_it_is_read() -> None:
    answers = LargeAnswers()
    turns = 0

    with answers.awaiting(7), anyio.fail_after(MAX_WAIT_S):
        reading = asyncio.ensure_future(answers.shortened(answer(ROWS)))
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)

    assert turns > len(answer(ROWS)) // LARGE_BYTES * 20


def as_json(request: bytes, result: Any) -> bytes:
    return answered(request, result)


def as_event(request: bytes, result: Any) -> bytes:
    frame = {"jsonrpc": "2.0", "id": body_of(request)["id"], "result": result}
    return response("200 OK", b"data: " + json.dumps(frame).encode() + b"\n\n", content_type="text/event-stream")


@pytest.mark.e2e
@pytest.mark.parametrize("told", [as_json, as_event])
async def test_the_result_of_a_call_is_whole(tmp_path: Path, told: Callable[[bytes, Any], bytes]) -> None:
    discovered: dict[str, Any] = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "tools": LISTED}
    result: dict[str, Any] = {"resultType": "complete", "content": [], "structuredContent": ROWS}

    def reply(request: bytes) -> bytes:
        return told(request, result) if b'"tools/call"' in request else answered(request, discovered)

    async with canned_server(reply) as (port, _):
        entries = {"web": entry(port)}
        warm(tmp_path, entries, {"web": LISTED}, "2026-07-28")
        async with fleet(tmp_path, entries) as running:
            got = await running.call("mcp__web__echo")

    assert got.structured == ROWS
