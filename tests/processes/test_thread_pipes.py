"""Pipes read and written by threads: what the protocol sees is what it sees of the event loop's own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from goat_mcp.core import posix
from goat_mcp.processes.thread_pipes import ThreadReader, ThreadWriter

pytestmark = pytest.mark.anyio


class Received(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = b""
        self.came = asyncio.Event()
        self.ended = asyncio.Event()
        self.problem: Exception | None = None
        self.calls: list[str] = []

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.came.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.problem = exc
        self.ended.set()

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")
        self.came.set()


async def _within(event: asyncio.Event) -> None:
    async with asyncio.timeout(5):
        await event.wait()


async def test_all_comes_in_order_and_then_the_end() -> None:
    theirs, ours = os.pipe()
    received, sent = Received(), b"".join(b"%d\r\n\x1a" % number for number in range(100_000))
    ThreadReader(theirs, received, asyncio.get_running_loop())
    writer = ThreadWriter(ours, Received(), asyncio.get_running_loop())

    for start in range(0, len(sent), 70_001):
        writer.write(sent[start : start + 70_001])
    await asyncio.to_thread(writer.close)
    await _within(received.ended)

    assert received.data == sent
    assert received.problem is None


async def test_a_paused_reader_leaves_the_rest_in_the_pipe() -> None:
    theirs, ours = os.pipe()
    received = Received()
    reader = ThreadReader(theirs, received, asyncio.get_running_loop())
    os.write(ours, b"1")
    await _within(received.came)
    reader.pause_reading()
    # What it may already wait for still comes.
    for number in b"23":
        os.write(ours, bytes([number]))
        await asyncio.sleep(0.05)
    assert received.data in (b"1", b"12")

    reader.resume_reading()
    os.close(ours)
    await _within(received.ended)

    assert received.data == b"123"


async def test_a_writer_says_when_its_reader_is_behind_and_when_no_more() -> None:
    theirs, ours = os.pipe()
    protocol = Received()
    writer = ThreadWriter(ours, protocol, asyncio.get_running_loop())
    size = 1024 * 1024

    writer.write(b"x" * size)
    assert protocol.calls == ["pause"]
    left = size
    while left:
        left -= len(await asyncio.to_thread(os.read, theirs, size))
    await _within(protocol.came)

    assert protocol.calls == ["pause", "resume"]
    assert writer.get_write_buffer_size() == 0
    writer.close()
    os.close(theirs)


async def test_a_writer_whose_reader_is_gone_loses_its_connection() -> None:
    theirs, ours = os.pipe()
    os.close(theirs)
    protocol = Received()
    writer = ThreadWriter(ours, protocol, asyncio.get_running_loop())

    writer.write(b"x")
    await _within(protocol.ended)

    assert isinstance(protocol.problem, BrokenPipeError)
    assert writer.is_closing()


async def test_what_was_written_before_the_close_is_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "out"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | posix.O_BINARY)
    writer = ThreadWriter(descriptor, Received(), asyncio.get_running_loop())

    writer.write(b"a\n" * 50_000)
    writer.close()

    assert file.read_bytes() == b"a\n" * 50_000
