"""What an upstream sends unasked is bounded: what is read of it, passed on, kept, and answered (R-UP-3)."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCResponse

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.upstreams.call_timeout import CallClock
from goat_mcp.upstreams.faults import FaultMarks
from goat_mcp.upstreams.progress import REPORTS_AT_ONCE, ProgressRelay
from goat_mcp.upstreams.transports.callers import LOGS_AT_ONCE, MAX_UNSENT, Callers
from goat_mcp.upstreams.transports.child_pipes import ChildPipes, StdioTransport
from goat_mcp.upstreams.transports.frames import FrameReader
from goat_mcp.upstreams.transports.notifications import LOGS, MAX_HELD, PROGRESS, READ_AT_ONCE, NotificationLimits
from tests.upstreams.fleet import fleet

pytestmark = pytest.mark.anyio


PLAIN_NOTICES = [
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
    '{"method": "notifications/message", "params": {"level": "info", "data": "x"}, "jsonrpc": "2.0"}',
    ' { "params" : { } , "jsonrpc" : "2.0" , "method" : "notifications/message" } \r',
    '{"jsonrpc":"2.0","method":"notifications/message"}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":{"id":7,"result":{}}}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\\"}}, \\"id\\": 7"}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":[[[["]}"]]], "{", "\\u0069d"]}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}',
    '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
]
NO_PLAIN_NOTICES = [
    '{"jsonrpc":"2.0","id":7,"result":{}}',
    '{"jsonrpc":"2.0","id":7,"result":{"method":"notifications/message"}}',
    '{"jsonrpc":"2.0","id":7,"method":"notifications/message","params":{}}',
    '{"jsonrpc":"2.0","method":"notifications/message","id":7,"params":{}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{},"id":7}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{},"result":{},"id":7}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{},"id":7,"method":"x"}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{},"\\u0069d":7}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{},"\\u006dethod":"ping","id":7}',
    '{"jsonrpc":"2.0","method":"notifications/message","method":"ping","params":{},"id":7}',
    '{"jsonrpc":"2.0","method":"notifications/message","method":"ping","params":{}}',
    '{"jsonrpc":"2.0","method":"notifications\\/message","params":{}}',
    '{"jsonrpc":"2.0","method":"notifications/mess\\u0061ge","params":{}}',
    '{"jsonrpc":"2.0","method":"notifications/message ","params":{}}',
    '{"jsonrpc":"2.0","method":"elicitation/create","params":{}}',
    '{"jsonrpc":"2.0","method":"xnotifications/message","params":{}}',
    '{"jsonrpc":"2.0","method":["notifications/message"],"params":{}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":[]}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":null}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{}}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{}} x',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{}}{"jsonrpc":"2.0","id":7,"result":{}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"a":"},"id":7}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"a":[}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{]},"id":7}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"a":"\\"}},"id":7}',
    '{"jsonrpc":"2.0","method":"notifications/message","extra":{},"params":{}}',
    '{"jsonrpc":"1.0","method":"notifications/message","params":{}}',
    '{"jsonrpc":"2.0","params":{"method":"notifications/message"}}',
    '[{"jsonrpc":"2.0","method":"notifications/message","params":{}}]',
    '"jsonrpc":"2.0","method":"notifications/message","params":{}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":' + '{"a":' * 100 + "1" + "}" * 101,
    "{}",
    "",
]
"""Lines that are parsed, however many come: with an id, with what is no member of a notice, or in doubt."""


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_an_allowance_is_used_up_and_fills_again_to_its_size() -> None:
    clock = Clock()
    allowance = TokenBucket(10, 3, clock)

    at_first = [allowance.take() for _ in range(4)]
    clock.now_s += 0.1
    later = [allowance.take() for _ in range(2)]
    clock.now_s += 100
    full = [allowance.take() for _ in range(4)]

    assert (at_first, later, full) == ([True] * 3 + [False], [True, False], [True] * 3 + [False])


def test_what_is_spent_beyond_an_allowance_tells_how_long_to_wait() -> None:
    clock = Clock()
    allowance = TokenBucket(10, 3, clock)

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

    @property
    def cancellation(self) -> Mapping[str, Any]:
        return {}

    async def roots(self) -> tuple[Path, ...]:
        return ()

    async def ask(self, requests: Any) -> dict[str, dict[str, Any]]:
        raise AssertionError("nobody asks it anything")

    async def notify(self, method: str, params: Any) -> None:
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
    assert len(client.told) == MAX_UNSENT


async def test_of_a_flood_of_progress_a_part_is_passed_on() -> None:
    heard: list[float] = []

    async def progress(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
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
    pipes = ChildPipes(StdioTransport(marks, FrameReader(marks)))
    pipes.pause_writing()
    question = b'{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{}}\n'

    pipes.pipe_data_received(1, b"".join(question % number for number in range(1000)))
    pipes.inbox.end()
    taken = [message async for message in pipes.inbox]

    assert len(taken) == 64


def test_f13_29_notice_flood_only_whole_notices_are_left_unread() -> None:
    def limits() -> NotificationLimits:
        flooded = NotificationLimits(clock=lambda: 0.0)
        for method in (LOGS, PROGRESS, "notifications/cancelled"):
            for _ in range(2 * int(READ_AT_ONCE)):
                flooded.took(method)
        return flooded

    left_unread = [text for text in (*NO_PLAIN_NOTICES, *PLAIN_NOTICES) if limits().leaves_unread(text.encode())]

    assert left_unread == PLAIN_NOTICES


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    st.permutations(["jsonrpc", "method", "params", "id", "result", "error"]),
    st.sets(st.sampled_from(["id", "result", "error"])),
    st.sampled_from([LOGS, PROGRESS, "notifications/x", "tools/call", 7, None]),
)
def test_f13_29_notice_flood_what_is_left_unread_says_nothing_but_a_notice(
    value: Any, order: list[str], more: set[str], method: Any
) -> None:
    members: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": {"data": value}} | dict.fromkeys(
        more, value
    )
    line = json.dumps({name: members[name] for name in order if name in members}).encode()
    flooded = NotificationLimits(clock=lambda: 0.0)
    for _ in range(2 * int(READ_AT_ONCE)):
        flooded.took(LOGS)
        flooded.took(PROGRESS)
        flooded.took("notifications/x")

    is_notice = not more and isinstance(method, str) and method.startswith("notifications/")
    assert flooded.leaves_unread(line) == is_notice


def test_f13_29_notice_flood_the_first_notices_are_read_and_others_are_counted() -> None:
    reader = FrameReader(FaultMarks())
    answer = b'{"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n'

    logs = len(list(reader.feed((PLAIN_NOTICES[0].encode() + b"\n") * 3 * int(READ_AT_ONCE))))
    (answered,) = reader.feed(answer)
    (progress,) = reader.feed(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}\n')

    # A slow machine gives time for a few more.
    assert READ_AT_ONCE <= logs < 2 * READ_AT_ONCE
    assert reader.limits.dropped == 3 * READ_AT_ONCE - logs
    assert isinstance(answered, JSONRPCResponse)
    assert isinstance(progress, JSONRPCNotification)


def test_f13_29_notice_flood_that_a_list_has_changed_is_not_lost() -> None:
    reader = FrameReader(FaultMarks())
    flood = b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:a"}}\n' * 3000
    changed = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'

    read = list(reader.feed(flood + changed * 3000))
    held: list[Any] = list(reader.held(all_of_it=True))

    assert READ_AT_ONCE <= len(read) < 2 * READ_AT_ONCE
    assert {message.method for message in held} == {
        "notifications/resources/updated",
        "notifications/tools/list_changed",
    }
    assert len(held) == 2 and reader.limits.dropped == 0


def test_f13_29_notice_flood_of_different_notices_is_held_in_part_and_counted() -> None:
    reader = FrameReader(FaultMarks())
    updated = b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:%d"}}\n'

    read = list(reader.feed(b"".join(updated % number for number in range(5000))))
    held = list(reader.held(all_of_it=True))

    assert len(held) == MAX_HELD
    assert len(read) + len(held) + reader.limits.dropped == 5000


# A hundred thousand lines of one kind, then the answer.
FLOOD = """
import json, sys
def log(n): return {"level": "info", "data": f"line {n} of many"}
LINES = {
    "logs": lambda n: line({"method": "notifications/message", "params": log(n)}),
    "progress": lambda n: line({"method": "notifications/progress", "params": {"progressToken": 1, "progress": n}}),
    "lists": lambda n: line({"method": "notifications/resources/list_changed"}),
    "junk": lambda n: f"[INFO] line {n} of many\\n",
    "json_logs": lambda n: json.dumps({"level": 30, "time": n, "pid": 7, "msg": f"line {n} of many"}) + "\\n",
    "braces": lambda n: f"{{ line {n} of many\\n",
    "none": lambda n: "",
}
def line(message): return json.dumps({"jsonrpc": "2.0", **message}) + "\\n"
for request in sys.stdin:
    message = json.loads(request)
    number = message.get("id")
    match message.get("method"):
        case "initialize":
            about = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "l", "version": "1"}}
            said = line({"id": number, "result": {**about, "capabilities": {"tools": {}, "logging": {}}}})
        case "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in LINES]
            said = line({"id": number, "result": {"tools": tools}})
        case "tools/call":
            made = LINES[message["params"]["name"]]
            said = "".join(made(n) for n in range(100_000))
            said += line({"id": number, "result": {"content": [{"type": "text", "text": "the answer"}]}})
        case "server/discover":
            said = line({"id": number, "error": {"code": -32601, "message": "no"}})
        case _:
            continue
    sys.stdout.write(said)
    sys.stdout.flush()
"""


@pytest.mark.e2e
@pytest.mark.parametrize("lines", ["logs", "progress", "lists", "junk", "json_logs", "braces"])
async def test_f13_29_notice_flood_of_100000_lines_delays_neither_its_answer_nor_others(
    tmp_path: Path, lines: str
) -> None:
    script = tmp_path / "flood.py"
    script.write_text(FLOOD)
    entry = {"command": sys.executable, "args": ["-IS", str(script)]}
    neighbour_s: list[float] = []
    async with fleet(tmp_path, {"flood": entry, "calm": entry}) as running:
        await running.call("mcp__flood__none")
        await running.call("mcp__calm__none")

        async def keep_calling() -> None:
            while True:
                began_s = time.monotonic()
                await running.call("mcp__calm__none")
                neighbour_s.append(time.monotonic() - began_s)

        result, took_s = ToolResult(), 0.0
        async with anyio.create_task_group() as group:
            group.start_soon(keep_calling)
            began_s = time.monotonic()
            result = await running.call(f"mcp__flood__{lines}")
            took_s = time.monotonic() - began_s
            group.cancel_scope.cancel()
        status = running.status("flood")

    assert result.text == "the answer"
    # It takes a second; 50 s at 2,000 lines a second.
    assert took_s < 15
    assert sorted(neighbour_s)[int(len(neighbour_s) * 0.95)] < 1
    if lines in ("junk", "json_logs", "braces"):
        assert status.junk_lines == 100_000
    elif lines != "lists":
        assert status.dropped_notices > 50_000


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
