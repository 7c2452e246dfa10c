"""Frames on the wire: lines of any size and shape, and none of them can stop the next."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.server.stdio.frame_validation import Fault
from goat_mcp.server.stdio.transport import (
    StoppableReader,
    _parse,  # pyright: ignore[reportPrivateUsage]  # the answer to a bad frame
    _read,  # pyright: ignore[reportPrivateUsage]  # what it reads, without a process around it
    frames,
)

pytestmark = pytest.mark.anyio


async def frames_of(*chunks: bytes, max_frame_bytes: int = 100) -> list[bytes | None]:
    reader = StoppableReader(max_frame_bytes)
    for chunk in chunks:
        reader.data_received(chunk)
    reader.connection_lost(None)
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
    ("frame", "code", "request_id"),
    [
        pytest.param(b"garbage", -32700, None, id="PR-01"),
        pytest.param(b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600, 1, id="PR-02"),
        pytest.param(b"[]", -32600, None, id="PR-13"),
        pytest.param(b'{"jsonrpc":"2.0","id":7,"method":5}', -32600, 7, id="no method"),
        pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":1,"a":2}}', -32600, 7, id="named twice"),
        pytest.param(None, -32600, None, id="too long"),
    ],
)
def test_a_frame_that_is_no_message_is_answered(frame: bytes | None, code: int, request_id: int | None) -> None:
    value = _read(frame, 100)
    answer = value if isinstance(value, Fault) else _parse(frame or b"")

    assert isinstance(answer, Fault)
    assert (answer.code, answer.request_id) == (code, request_id)
