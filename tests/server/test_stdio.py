"""Frames on the wire: lines of any size and shape, and none of them can stop the next."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.server.stdio import _parse, frames  # pyright: ignore[reportPrivateUsage]  # the answer to a bad frame

pytestmark = pytest.mark.anyio


async def frames_of(*chunks: bytes, max_frame_bytes: int = 100) -> list[bytes | None]:
    reader = asyncio.StreamReader()
    for chunk in chunks:
        reader.feed_data(chunk)
    reader.feed_eof()
    return [frame async for frame in frames(reader, max_frame_bytes)]


async def test_lines_are_frames_wherever_they_are_cut() -> None:
    assert await frames_of(b'{"a"', b":1}\n\n{", b'"b":2}\n') == [b'{"a":1}', b'{"b":2}']


@given(st.lists(st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b" ")), max_size=8), st.integers(1, 30))
def test_what_was_framed_comes_back_whole(lines: list[bytes], cut: int) -> None:
    wire = b"".join(line + b"\n" for line in lines)
    chunks = [wire[start : start + cut] for start in range(0, len(wire), cut)]

    assert asyncio.run(frames_of(*chunks)) == [line for line in lines if line.strip()]


async def test_a_line_over_the_limit_is_dropped_and_the_next_one_arrives() -> None:
    assert await frames_of(b"x" * 101 + b"\n", b"ok\n") == [None, b"ok"]
    assert await frames_of(*[b"x" * 50] * 10, b"\nok\n") == [None, b"ok"]


@pytest.mark.parametrize(
    ("frame", "code"), [(b"garbage", -32700), (b'{"jsonrpc":"1.0"}', -32600), (b"[]", -32600), (None, -32600)]
)
def test_a_frame_that_is_no_message_is_answered(frame: bytes | None, code: int) -> None:
    answer = _parse(frame, 100)

    assert isinstance(answer, bytes)
    assert json.loads(answer)["error"]["code"] == code
    assert json.loads(answer)["id"] is None


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"Read","arguments":{"p":"\\ud800"}}}',
            "Unicode",
        ),
        (b'{"jsonrpc":"2.0","method":"x","params":' + b"[" * 5000 + b"]" * 5000 + b',"id":7}', "nested"),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', "JSON-RPC"),
    ],
    ids=["half a surrogate pair", "nested", "no method"],
)
def test_a_request_that_cannot_be_read_is_answered_under_its_id(frame: bytes, said: str) -> None:
    answer = _parse(frame, 100_000)

    assert isinstance(answer, bytes)
    assert json.loads(answer)["id"] == 7
    assert said in json.loads(answer)["error"]["message"]


def test_an_id_that_is_not_certain_is_not_guessed() -> None:
    answer = _parse(b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"id":8,"p":"\\ud800"}}', 1000)

    assert isinstance(answer, bytes)
    assert json.loads(answer)["id"] is None
