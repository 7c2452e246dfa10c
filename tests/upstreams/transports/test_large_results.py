"""What comes over the pipes of a process when some of it is large: all of it, in order, and nobody waits for it."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCResponse

from goat_mcp.upstreams.config.entry import StdioLaunch
from goat_mcp.upstreams.faults import FaultMarks
from goat_mcp.upstreams.transports.child_pipes import ChildPipes, StdioLink
from goat_mcp.upstreams.transports.frames import FrameReader
from goat_mcp.upstreams.transports.large_frame import PIECE_BYTES
from goat_mcp.upstreams.transports.stdio_transport import stdio_transport

pytestmark = pytest.mark.anyio

TEXT = "line\n" * 1_000_000
ANSWER = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": TEXT}}).encode() + b"\n"
ROWS = [{"id": number, "name": f"n{number}"} for number in range(60_000)]
MANY = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"rows": ROWS}}).encode() + b"\n"
NOTICE = b'{"jsonrpc":"2.0","method":"m"}\n'
MAX_WAIT_S = 60.0
ANSWERS_AND_ENDS = """
import json, sys
sys.stdin.buffer.readline()
print(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": "line\\n" * 1_000_000}}))
"""


def told(item: SessionMessage | Exception) -> str:
    assert isinstance(item, SessionMessage)
    match item.message:
        case JSONRPCResponse(result={"rows": rows}):
            return "whole" if rows == ROWS else "broken"
        case JSONRPCResponse(result={"text": text}):
            return "whole" if text == TEXT else "broken"
        case JSONRPCNotification():
            return "notice"
        case other:
            return repr(other)


# ISO-1, ISO-3
@pytest.mark.parametrize("answer", [ANSWER, MANY], ids=["one text", "many small values"])
async def test_others_have_their_turns_while_a_large_answer_is_read_and_what_follows_comes_after_it(
    answer: bytes,
) -> None:
    marks = FaultMarks()
    pipes = ChildPipes(StdioLink(marks, FrameReader(marks)))
    turns = 0

    pipes.pipe_data_received(1, answer[:100])
    pipes.pipe_data_received(1, answer[100:] + NOTICE)
    received: list[str] = []
    async with anyio.create_task_group() as group:

        async def receive() -> None:
            received.extend([told(await pipes.inbox.receive()) for _ in range(2)])

        group.start_soon(receive)
        with anyio.fail_after(MAX_WAIT_S):
            while len(received) < 2:
                turns += 1
                await asyncio.sleep(0)

    assert received == ["whole", "notice"]
    assert turns > 10


# ISO-1
async def test_others_with_work_have_several_turns_between_two_steps_of_a_large_answer() -> None:
    marks = FaultMarks()
    pipes = ChildPipes(StdioLink(marks, FrameReader(marks)))
    turns = 0

    pipes.pipe_data_received(1, ANSWER[:100])
    pipes.pipe_data_received(1, ANSWER[100:])
    received: list[str] = []
    async with anyio.create_task_group() as group:

        async def receive() -> None:
            received.append(told(await pipes.inbox.receive()))

        group.start_soon(receive)
        with anyio.fail_after(MAX_WAIT_S):
            while not received:
                turns += 1
                time.sleep(0.001)  # noqa: ASYNC251  # work of others, which holds the event loop
                await asyncio.sleep(0)

    assert received == ["whole"]
    assert turns > 1.5 * len(ANSWER) / PIECE_BYTES


async def test_the_end_of_a_process_waits_for_the_large_answer_it_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goat_mcp.upstreams.transports.child_pipes._DRAIN_AFTER_EXIT_S", 0.0)
    marks = FaultMarks()
    pipes = ChildPipes(StdioLink(marks, FrameReader(marks)))

    pipes.pipe_data_received(1, ANSWER[:100])
    pipes.pipe_data_received(1, ANSWER[100:])
    pipes.pipe_connection_lost(1, None)
    with anyio.fail_after(MAX_WAIT_S):
        received = [told(item) async for item in pipes.inbox]

    assert received == ["whole"]


async def test_a_large_answer_that_is_the_last_of_a_process_arrives() -> None:
    launch = StdioLaunch(command=sys.executable, args=("-ISc", ANSWERS_AND_ENDS))

    received: list[str] = []
    with anyio.fail_after(MAX_WAIT_S):
        async with stdio_transport(launch, guard=None) as (_, inbox, outbox):
            await outbox.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="go")))
            async for item in inbox:
                received.append(told(item))

    assert received == ["whole"]
