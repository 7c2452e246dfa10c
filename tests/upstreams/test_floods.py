"""What an upstream sends unasked is bounded: what is read of it, passed on, kept, and answered (R-UP-3)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.upstreams.allowance import Allowance
from goat_mcp.upstreams.calls.progress import REPORTS_AT_ONCE, ProgressRelay
from goat_mcp.upstreams.faults import FaultMarks
from goat_mcp.upstreams.links.child_pipes import ChildPipes, StdioLink
from goat_mcp.upstreams.links.frames import FrameReader
from goat_mcp.upstreams.questions.call_clock import CallClock
from goat_mcp.upstreams.questions.callers import LOGS_AT_ONCE, MAX_UNTOLD, Callers
from tests.upstreams.fleet import fleet

pytestmark = pytest.mark.anyio


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_an_allowance_is_used_up_and_fills_again_to_its_size() -> None:
    clock = Clock()
    allowance = Allowance(10, 3, clock)

    at_first = [allowance.take() for _ in range(4)]
    clock.now_s += 0.1
    later = [allowance.take() for _ in range(2)]
    clock.now_s += 100
    full = [allowance.take() for _ in range(4)]

    assert (at_first, later, full) == ([True] * 3 + [False], [True, False], [True] * 3 + [False])


def test_what_is_spent_beyond_an_allowance_tells_how_long_to_wait() -> None:
    clock = Clock()
    allowance = Allowance(10, 3, clock)

    waits = [allowance.spend(2), allowance.spend(2), allowance.spend(10)]
    clock.now_s += 1.2
    waits.append(allowance.spend(0))

    assert waits == pytest.approx([0, 0.1, 1.1, 0])


class Listener:
    """A client that wants all log messages and takes none yet."""

    protocol_version = "2025-11-25"
    is_stateless = False
    log_level = "debug"
    notices = None
    known_roots = ()

    def __init__(self) -> None:
        self.capabilities: dict[str, Any] = {}
        self.given: dict[str, Any] = {}
        self.told: list[str] = []

    async def roots(self) -> tuple[Path, ...]:
        return ()

    async def ask(self, requests: Any) -> dict[str, dict[str, Any]]:
        raise AssertionError("nobody asks it anything")

    async def tell(self, method: str, params: Any) -> None:
        self.told.append(params["data"])


async def test_of_a_flood_of_log_messages_a_part_is_passed_on_and_the_rest_is_counted() -> None:
    client = Listener()
    callers = Callers("loud", {}, allow=(), roots=lambda has_some: ())
    told = 3 * int(LOGS_AT_ONCE)

    with callers.one(ToolContext(call_id="c", client=client), CallClock(60, 60)):
        for number in range(told):
            callers.notified("notifications/message", {"level": "error", "data": str(number)})
        await callers.flush(client)

    # A slow machine gives time for a few more.
    assert LOGS_AT_ONCE <= told - callers.dropped_logs < 2 * LOGS_AT_ONCE
    assert len(client.told) == MAX_UNTOLD


async def test_of_a_flood_of_progress_a_part_is_passed_on() -> None:
    heard: list[float] = []

    async def progress(done: float, total: float | None = None, message: str | None = None) -> None:
        heard.append(done)

    relay = ProgressRelay(progress)
    for number in range(10 * int(REPORTS_AT_ONCE)):
        await relay.report(number, None, None)

    assert REPORTS_AT_ONCE <= len(heard) < 2 * REPORTS_AT_ONCE
    assert heard == sorted(heard)


# A thousand questions, then it reads on: what it was answered is in the file.
QUESTIONS = """
import json, sys
log = open(sys.argv[1], "w")
def send(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    number = message.get("id")
    match message.get("method"):
        case "initialize":
            about = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "q", "version": "1"}}
            send({"id": number, "result": {**about, "capabilities": {"tools": {}}}})
        case "tools/list":
            send({"id": number, "result": {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}})
        case "tools/call":
            sys.stdout.write("".join(
                json.dumps({"jsonrpc": "2.0", "id": f"q{n}", "method": "sampling/createMessage", "params": {}}) + "\\n"
                for n in range(1000)))
            send({"id": number, "result": {"content": [{"type": "text", "text": "asked"}]}})
        case None:
            print(json.dumps(message), file=log, flush=True)
        case "server/discover":
            send({"id": number, "error": {"code": -32601, "message": "no"}})
"""


@pytest.mark.e2e
async def test_each_of_a_thousand_questions_is_refused_while_few_are_open_at_a_time(tmp_path: Path) -> None:
    # ERA-3: an error at once, never silence, also where there are too many.
    log = tmp_path / "log"
    entry = {"command": sys.executable, "args": ["-ISc", QUESTIONS, str(log)]}
    async with fleet(tmp_path, {"asks": entry}) as running:
        result = await running.call("mcp__asks__ask")
        await running.until(lambda: len(log.read_text().splitlines()) == 1000, 60)
    answers = [json.loads(line) for line in log.read_text().splitlines()]

    assert result.text == "asked"
    assert {answer["id"] for answer in answers} == {f"q{number}" for number in range(1000)}
    assert {answer["error"]["code"] for answer in answers} <= {-32601, -32000}


async def test_questions_of_one_that_reads_no_answer_are_not_piled_up() -> None:
    marks = FaultMarks()
    pipes = ChildPipes(StdioLink(marks, FrameReader(marks)))
    pipes.pause_writing()
    question = b'{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{}}\n'

    pipes.pipe_data_received(1, b"".join(question % number for number in range(1000)))
    pipes.inbox.end()
    taken = [message async for message in pipes.inbox]

    assert len(taken) == 64


# Three thousand log messages, then the answer, then the end: all of it is in the pipe by then.
LAST_WORDS = """
import json, os, sys
def line(message): return json.dumps({"jsonrpc": "2.0", **message}) + "\\n"
for request in sys.stdin:
    message = json.loads(request)
    number = message.get("id")
    match message.get("method"):
        case "initialize":
            about = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "l", "version": "1"}}
            said = line({"id": number, "result": {**about, "capabilities": {"tools": {}}}})
        case "tools/list":
            said = line({"id": number, "result": {"tools": [{"name": "end", "inputSchema": {"type": "object"}}]}})
        case "tools/call":
            notice = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}
            said = line(notice) * 3000
            said += line({"id": number, "result": {"content": [{"type": "text", "text": "the answer"}]}})
        case "server/discover":
            said = line({"id": number, "error": {"code": -32601, "message": "no"}})
        case _:
            continue
    sys.stdout.write(said)
    sys.stdout.flush()
    if message["method"] == "tools/call":
        os._exit(0)
"""


@pytest.mark.e2e
async def test_an_answer_behind_a_flood_is_heard_though_its_process_has_ended(tmp_path: Path) -> None:
    # LIF-9, REL-1
    script = tmp_path / "last_words.py"
    script.write_text(LAST_WORDS)
    entry = {"command": sys.executable, "args": ["-IS", str(script)]}
    async with fleet(tmp_path, {"last": entry}) as running:
        result = await running.call("mcp__last__end")

    assert result.text == "the answer"
