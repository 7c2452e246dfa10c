"""What comes over the pipes of a process when some of it is large: all of it, in order."""

from __future__ import annotations

import json
import sys

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCResponse

from goat_mcp.upstreams.config.entry import StdioLaunch
from goat_mcp.upstreams.faults import FaultMarks
from goat_mcp.upstreams.transports.child_pipes import ChildPipes, StdioTransport
from goat_mcp.upstreams.transports.frames import FrameReader
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


# ISO-3
@pytest.mark.parametrize("answer", [ANSWER, MANY], ids=["one text", "many small values"])
async def test_a_large_answer_is_whole_and_what_follows_comes_after_it(answer: bytes) -> None:
    marks = FaultMarks()
    pipes = ChildPipes(StdioTransport(marks, FrameReader(marks)))

    pipes.pipe_data_received(1, answer[:100])
    pipes.pipe_data_received(1, answer[100:] + NOTICE)
    with anyio.fail_after(MAX_WAIT_S):
        received = [told(await pipes.inbox.receive()) for _ in range(2)]

    assert received == ["whole", "notice"]


async def test_a_large_answer_that_is_the_last_of_a_process_arrives() -> None:
    launch = StdioLaunch(command=sys.executable, args=("-ISc", ANSWERS_AND_ENDS))

    received: list[str] = []
    with anyio.fail_after(MAX_WAIT_S):
        async with stdio_transport(launch, guard=None) as (_, inbox, outbox):
            await outbox.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="go")))
            async for item in inbox:
                received.append(told(item))

    assert received == ["whole"]
