"""The fast path of calls over stdio against the SDK's: the same frames, in both protocol eras (design 0019)."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry import trace

from goat_mcp.calls.audit.log import AuditLog
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Form, Question
from goat_mcp.core.errors import UpstreamError
from goat_mcp.core.gateway_chain import HOPS_KEY
from goat_mcp.core.result import ToolResult, text_block, text_result
from goat_mcp.server.adapter import Adapter
from goat_mcp.server.plain_calls import FastCall
from goat_mcp.server.stdio.fast_path import FastPath
from goat_mcp.server.stdio.frame_writer import FrameWriter
from goat_mcp.server.stdio.transport import wire_streams
from tests.server.asking import AskingTool
from tests.server.test_adapter import gateway
from tests.tool_doubles import fake

pytestmark = pytest.mark.anyio
ERAS = ("handshake", "modern")
both_eras = pytest.mark.parametrize("era", ERAS)
FRAME_TIMEOUT_S = 60.0
PREFIX = "io.modelcontextprotocol/"
Tool = Any


class Counted(FastPath):
    """Counts the calls that took the fast path; `is_off` sends all of them the SDK's."""

    def __init__(self, adapter: Adapter, *, is_off: bool) -> None:
        super().__init__(adapter.plain_calls())
        self.is_off = is_off
        self.taken = 0

    def takes(self, message: object) -> bool:
        return not self.is_off and super().takes(message)

    def start(self, message: Mapping[str, Any], writer: FrameWriter) -> None:
        self.taken += 1
        super().start(message, writer)


@dataclass
class Line:
    """A client of raw frames in one era, and all it has received."""

    era: str
    calls: Counted
    to_server: int
    arriving: asyncio.StreamReader
    capabilities: Mapping[str, Any]
    received: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def envelope(self) -> dict[str, Any]:
        if self.era == "handshake":
            return {}
        return {
            PREFIX + "protocolVersion": "2026-07-28",
            PREFIX + "clientInfo": {"name": "line", "version": "1"},
            PREFIX + "clientCapabilities": dict(self.capabilities),
        }

    def send(self, **frame: Any) -> None:
        os.write(self.to_server, json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")

    def request(self, request_id: Any, method: str, params: Mapping[str, Any], **meta: Any) -> None:
        meta = {**self.envelope, **meta}
        self.send(id=request_id, method=method, params={**params, **({"_meta": meta} if meta else {})})

    def call(self, request_id: Any, tool: str, arguments: Mapping[str, Any] | None = None, **meta: Any) -> None:
        self.request(request_id, "tools/call", {"name": tool, "arguments": arguments or {}}, **meta)

    async def next(self) -> dict[str, Any]:
        with anyio.fail_after(FRAME_TIMEOUT_S):
            line = await self.arriving.readline()
        assert line, "the server closed its side"
        self.received.append(json.loads(line))
        return self.received[-1]

    async def answer(self, request_id: Any) -> dict[str, Any]:
        while (frame := await self.next()).get("id") != request_id or "method" in frame:
            pass
        return frame

    async def rest(self) -> list[dict[str, Any]]:
        """What comes until the server ends, after the client has closed its side."""
        self.hang_up()
        with anyio.fail_after(FRAME_TIMEOUT_S):
            while line := await self.arriving.readline():
                self.received.append(json.loads(line))
        return self.received

    def hang_up(self) -> None:
        if self.to_server >= 0:
            os.close(self.to_server)
            self.to_server = -1

    async def open(self) -> None:
        """As a client of the era begins; the first call shows the server who calls."""
        if self.era == "handshake":
            info = {"name": "line", "version": "1"}
            self.send(
                id=0,
                method="initialize",
                params={"protocolVersion": "2025-11-25", "capabilities": self.capabilities, "clientInfo": info},
            )
            await self.answer(0)
            self.send(method="notifications/initialized")
        self.call("first", "plain")
        await self.answer("first")
        self.received.clear()


@asynccontextmanager
async def line(
    folder: Path,
    era: str,
    tools: Sequence[Tool],
    *,
    short: bool,
    capabilities: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> AsyncGenerator[Line]:
    served = gateway(folder, **(settings or {}))
    served.registry.replace_source("test", [fake("plain"), *tools])
    adapter = Adapter(served, "stdio")
    calls = Counted(adapter, is_off=not short)
    from_client, to_server = os.pipe()
    from_server, to_client = os.pipe()
    arriving = asyncio.StreamReader()
    reading, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(arriving), os.fdopen(from_server, "rb", buffering=0)
    )

    async def serve() -> None:
        streams = wire_streams(from_client, to_client, calls, max_frame_bytes=1_000_000, telemetry=served.telemetry)
        async with streams as (read, write):
            await adapter.server.run(read, write, adapter.server.create_initialization_options())

    client = Line(era, calls, to_server, arriving, capabilities or {})
    async with served.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        group.start_soon(serve)
        await client.open()
        yield client
        client.hang_up()
        group.cancel_scope.cancel()
    reading.close()


Script = Callable[[Line], Awaitable[None]]


async def both_ways(
    folder: Path,
    era: str,
    script: Script,
    tools: Callable[[], Sequence[Tool]] = list,
    *,
    taken: int = 1,
    capabilities: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The frames of the fast path, which were compared with those of the SDK's. `taken` calls really took it."""
    received: list[list[dict[str, Any]]] = []
    for short in (True, False):
        async with line(folder, era, tools(), short=short, capabilities=capabilities) as client:
            await script(client)
            assert client.calls.taken == (taken if short else 0)
            received.append(client.received)
    assert received[0] == received[1]
    return received[0]


def upstream_answer(**members: Any) -> ToolResult:
    return ToolResult(content=(text_block("as text"),), **members)


ANSWERS: dict[str, ToolResult | Exception] = {
    "text": text_result("hello"),
    "not ASCII": text_result("grüß 🐐\u2028"),
    "lone surrogate": text_result("cut \ud83d emoji"),
    "facts": text_result("hello", facts={"lines": 3}),
    "two blocks and a picture": ToolResult(
        content=(text_block("a"), {"type": "image", "data": "aGk=", "mimeType": "image/png"}, text_block("b"))
    ),
    "annotated": ToolResult(content=({"type": "text", "text": "a", "annotations": {"audience": ["user"]}},)),
    "no blocks": ToolResult(content=()),
    "structured": upstream_answer(structured={"deep": [1, 2.5, None, {"x": "y"}]}),
    "structured list": upstream_answer(structured=[1, 2]),
    "own meta": upstream_answer(meta={"example.com/x": 1}),
    "signed by another": upstream_answer(meta={PREFIX + "serverInfo": {"name": "up", "version": "9"}}),
    "strange member": upstream_answer(other={"example": {"a": 1}}),
    "strange block": ToolResult(content=({"type": "hologram", "x": 1},)),
    "failed": ToolResult(content=(text_block("no luck"),), is_error=True),
    "upstream's error": UpstreamError(-32055, "not today", {"why": "monday"}),
    "upstream's error, bare": UpstreamError(-32055, "not today", None),
}


@both_eras
@pytest.mark.parametrize("case", ANSWERS)
async def test_an_answer_is_the_same_frame_on_both_ways(tmp_path: Path, era: str, case: str) -> None:
    async def script(client: Line) -> None:
        client.call(1, "subject", {"text": "hi"})
        await client.next()

    [frame] = await both_ways(tmp_path, era, script, lambda: [fake("subject", answer=ANSWERS[case])])

    assert frame["id"] == 1


@both_eras
async def test_half_a_surrogate_pair_is_shown_as_its_escape_which_every_client_reads(tmp_path: Path, era: str) -> None:
    async def script(client: Line) -> None:
        client.call(1, "text", {})
        await client.next()
        client.call(2, "error", {})
        await client.next()

    def tools() -> list[Tool]:
        answers = {"text": text_result("cut \ud83d emoji"), "error": UpstreamError(-32055, "cut \ud83d emoji")}
        return [fake(name, answer=answer) for name, answer in answers.items()]

    text, error = await both_ways(tmp_path, era, script, tools, taken=2)

    assert text["result"]["content"][0]["text"] == error["error"]["message"] == r"cut \ud83d emoji"


@both_eras
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        pytest.param("Raed", {}, id="unknown tool"),
        pytest.param("Read", {"file_path": "relative.txt"}, id="refused arguments"),
        pytest.param("Read", {"file_path": 5}, id="arguments of another kind"),
        pytest.param("Read", {}, id="missing arguments"),
        pytest.param("plain", {"digits": 2**70, "deep": [{"a": None}], "text": "grüß"}, id="all sorts"),
    ],
)
async def test_what_is_wrong_with_a_call_is_said_alike(
    tmp_path: Path, era: str, tool: str, arguments: dict[str, Any]
) -> None:
    async def script(client: Line) -> None:
        client.call(1, tool, arguments)
        await client.next()

    await both_ways(tmp_path, era, script)


@both_eras
@pytest.mark.parametrize("request_id", [0, -7, 2**60, "", "7", "a b", "ü"])
async def test_an_answer_bears_the_id_as_it_came(tmp_path: Path, era: str, request_id: Any) -> None:
    async def script(client: Line) -> None:
        client.call(request_id, "plain")
        await client.next()

    [frame] = await both_ways(tmp_path, era, script)

    assert frame["id"] == request_id and type(frame["id"]) is type(request_id)


@both_eras
async def test_arguments_may_be_left_out(tmp_path: Path, era: str) -> None:
    async def script(client: Line) -> None:
        client.request(1, "tools/call", {"name": "plain"})
        await client.next()

    await both_ways(tmp_path, era, script)


# What the fast path leaves to the SDK, each with the `_meta` or the params that make it so.
ODD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "null arguments": ({"arguments": None}, {}),
    "list of arguments": ({"arguments": []}, {}),
    "no name": ({"name": None}, {}),
    "number for a name": ({"name": 5}, {}),
    "a task": ({"task": {"ttl": 5}}, {}),
    "unknown member": ({"example": 1}, {}),
    "state that is none": ({"requestState": "x"}, {}),
    "answers to nothing": ({"inputResponses": {}}, {}),
    "null meta": ({"_meta": None}, {}),
    "list for meta": ({"_meta": []}, {}),
    "traced": ({}, {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}),
    "hops": ({}, {HOPS_KEY: ["a"]}),
    "progress for true": ({}, {"progressToken": True}),
    "progress for a list": ({}, {"progressToken": []}),
    "other revision": ({}, {PREFIX + "protocolVersion": "2027-01-01"}),
    "no revision": ({}, {PREFIX + "protocolVersion": 5}),
    "other client": ({}, {PREFIX + "clientInfo": {"name": "other", "version": "1"}}),
    "client of no kind": ({}, {PREFIX + "clientInfo": 5}),
    "capabilities of no kind": ({}, {PREFIX + "clientCapabilities": 5}),
    "log level of no kind": ({}, {PREFIX + "logLevel": "loud"}),
}
LEARNT = {
    "handshake": ("other client", "client of no kind", "capabilities of no kind", "log level of no kind"),
    "modern": ("other client",),
}
"""Cases in which the SDK finds nothing wrong; the handshake era has no use for any of these members."""


@both_eras
@pytest.mark.parametrize("case", ODD)
async def test_an_unusual_call_goes_the_sdks_way_and_one_like_it_only_if_that_took_it(
    tmp_path: Path, era: str, case: str
) -> None:
    params, meta = ODD[case]

    async def script(client: Line) -> None:
        named = {"name": "plain", "arguments": {}, "_meta": {**client.envelope, **meta}, **params}
        client.send(id=1, method="tools/call", params=named)
        await client.next()
        client.send(id=2, method="tools/call", params=named)
        await client.next()

    frames = await both_ways(tmp_path, era, script, taken=1 if case in LEARNT[era] else 0)

    assert [frame["id"] for frame in frames] == [1, 2]


@both_eras
async def test_frames_with_other_members_are_the_sdks(tmp_path: Path, era: str) -> None:
    async def script(client: Line) -> None:
        odds: list[dict[str, Any]] = [{"jsonrpc": "1.0"}, {"extra": 1}, {"params": []}]
        for number, odd in enumerate(odds):
            params = {"name": "plain", "arguments": {}, "_meta": client.envelope}
            client.send(**{"id": number, "method": "tools/call", "params": params, **odd})
            await client.next()

    await both_ways(tmp_path, era, script, taken=0)


@both_eras
async def test_a_call_after_another_request_is_learnt_from_again(tmp_path: Path, era: str) -> None:
    async def script(client: Line) -> None:
        client.call(1, "plain")
        await client.answer(1)
        client.request(2, "resources/list", {})
        client.call(3, "plain")
        await client.answer(3)
        client.call(4, "plain")
        await client.answer(4)
        client.received.sort(key=lambda frame: frame["id"])
        client.received[1] = {}  # it says what is there, which is not the matter

    await both_ways(tmp_path, era, script, taken=2)


async def test_a_log_level_set_just_before_a_call_holds_for_it(tmp_path: Path) -> None:
    async def says(ctx: ToolContext) -> str:
        assert ctx.client is not None
        return ctx.client.log_level

    async def script(client: Line) -> None:
        client.call(1, "Asks")
        await client.answer(1)
        client.send(id=2, method="logging/setLevel", params={"level": "error"})
        client.call(3, "Asks")
        await client.answer(3)

    frames = await both_ways(tmp_path, "handshake", script, lambda: [AskingTool(says)])

    assert [frame["result"]["content"][0]["text"] for frame in (frames[0], frames[-1])] == ["info", "error"]


@both_eras
@pytest.mark.parametrize("token", [0, "t", 7])
async def test_progress_and_messages_come_in_order_and_before_the_result(tmp_path: Path, era: str, token: Any) -> None:
    async def tells(ctx: ToolContext) -> str:
        assert ctx.client is not None
        await ctx.progress(1, 3)
        await ctx.client.notify("notifications/message", {"level": "error", "data": {"n": 1}, "logger": "up"})
        await ctx.progress(2, None, "half")
        await ctx.progress(2, 3)
        return "told"

    async def script(client: Line) -> None:
        client.call(1, "Asks", progressToken=token)
        await client.answer(1)
        ended = client.received[-2]["params"]
        assert ended["progress"] > client.received[-3]["params"]["progress"]
        assert ended.keys() == {"progressToken", "progress", "message"}
        assert re.fullmatch(r"Asks finished in 0\.\d{3} s", ended["message"])
        del client.received[-2]  # how long it took differs

    frames = await both_ways(tmp_path, era, script, lambda: [AskingTool(tells)])

    shown = [(frame.get("method", "answer").rpartition("/")[2], frame.get("params", {})) for frame in frames]
    assert [method for method, _ in shown] == ["progress", "progress", "message", "progress", "progress", "answer"]
    assert shown[0][1] == {"progressToken": token, "progress": 0, "message": "Asks started"}
    assert shown[3][1] == {"progressToken": token, "progress": 2, "message": "half"}


async def asks_twice(ctx: ToolContext) -> str:
    names = [
        (await ctx.ask(Form(message=f"who {number}?", questions=(Question("who", "Who"),)))).values for number in (1, 2)
    ]
    return json.dumps(names)


async def test_a_handshake_client_is_asked_during_the_call(tmp_path: Path) -> None:
    async def script(client: Line) -> None:
        client.call(1, "Asks")
        for _ in range(2):
            asked = await client.next()
            client.send(id=asked["id"], result={"action": "accept", "content": {"who": "goat"}})
            asked["id"] = "ours"
        await client.answer(1)

    frames = await both_ways(
        tmp_path, "handshake", script, lambda: [AskingTool(asks_twice)], capabilities={"elicitation": {}}
    )

    assert frames[-1]["result"]["content"][0]["text"] == '[{"who": "goat"}, {"who": "goat"}]'


async def test_a_modern_client_is_asked_by_the_result_and_its_sealed_state_comes_back(tmp_path: Path) -> None:
    async def script(client: Line) -> None:
        client.call(1, "Asks")
        for number in (2, 3):
            asked = (await client.next())["result"]
            answers = {key: {"action": "accept", "content": {"who": "goat"}} for key in asked["inputRequests"]}
            state = asked["requestState"]
            assert state.startswith("v1.")
            asked["requestState"] = "sealed"
            again = {"name": "Asks", "arguments": {}, "requestState": state, "inputResponses": answers}
            client.request(number, "tools/call", again)
        await client.answer(3)

    frames = await both_ways(
        tmp_path, "modern", script, lambda: [AskingTool(asks_twice)], capabilities={"elicitation": {}}
    )

    assert frames[-1]["result"]["content"][0]["text"] == '[{"who": "goat"}, {"who": "goat"}]'


@both_eras
async def test_a_state_somebody_made_up_is_refused_alike(tmp_path: Path, era: str) -> None:
    async def script(client: Line) -> None:
        client.request(1, "tools/call", {"name": "plain", "arguments": {}, "requestState": "v1.made-up"})
        await client.answer(1)

    await both_ways(tmp_path, era, script, taken=0)


@both_eras
@pytest.mark.parametrize("cancelled_as", [5, "5"])
async def test_a_cancelled_call_stops_and_is_never_answered(tmp_path: Path, era: str, cancelled_as: Any) -> None:
    ended: list[str] = []

    async def waits(ctx: ToolContext) -> str:
        assert ctx.client is not None
        try:
            await ctx.client.notify("notifications/message", {"level": "error", "data": "began"})
            await anyio.sleep_forever()
        finally:
            ended.append("ended")
        return ""

    async def script(client: Line) -> None:
        client.call(5, "Asks")
        await client.next()
        client.send(method="notifications/cancelled", params={"requestId": cancelled_as})
        client.call(5, "plain")
        await client.answer(5)

    frames = await both_ways(tmp_path, era, script, lambda: [AskingTool(waits)], taken=2)

    assert ended == ["ended"] * 2
    assert [frame.get("method", "answer") for frame in frames] == ["notifications/message", "answer"]


@both_eras
async def test_cancels_of_nothing_change_nothing(tmp_path: Path, era: str) -> None:
    async def script(client: Line) -> None:
        for params in ({"requestId": 99}, {"requestId": None}, {"requestId": [1]}, {}):
            client.send(method="notifications/cancelled", params=params)
        client.call(1, "plain")
        await client.answer(1)

    await both_ways(tmp_path, era, script)


@both_eras
async def test_an_id_that_is_open_is_refused_for_another_call(tmp_path: Path, era: str) -> None:
    release: list[anyio.Event] = []

    def tools() -> list[Any]:
        release.append(anyio.Event())
        return [fake("slow", release=release[-1])]

    async def script(client: Line) -> None:
        client.call(1, "slow")
        client.call("1", "plain")
        client.request(1, "tools/list", {})
        await client.next()
        await client.next()
        release[-1].set()
        await client.next()

    frames = await both_ways(tmp_path, era, script, tools)

    assert [frame.get("error", {}).get("code") for frame in frames] == [-32600, -32600, None]


@both_eras
async def test_a_call_that_runs_when_the_client_leaves_is_told_so(tmp_path: Path, era: str) -> None:
    slow = [fake("slow", release=anyio.Event()) for _ in range(2)]
    left = iter(slow)

    async def script(client: Line) -> None:
        client.call(1, "slow")
        with anyio.fail_after(FRAME_TIMEOUT_S):
            await running.started.wait()
        await client.rest()

    def tools() -> list[Any]:
        nonlocal running
        running = next(left)
        return [running]

    running = slow[0]
    frames = await both_ways(tmp_path, era, script, tools)

    assert frames == [{"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "Connection closed"}}]


@both_eras
async def test_many_calls_at_once_are_each_answered_once(tmp_path: Path, era: str) -> None:
    async def script(client: Line) -> None:
        for number in range(100):
            client.call(number, "plain", {"n": number})
        for _ in range(100):
            await client.next()
        client.received.sort(key=lambda frame: frame["id"])

    frames = await both_ways(tmp_path, era, script, taken=100)

    assert [frame["id"] for frame in frames] == list(range(100))


@both_eras
async def test_calls_begin_in_the_order_in_which_they_came(tmp_path: Path, era: str) -> None:
    tool = fake("subject")

    async def script(client: Line) -> None:
        for number in range(10):
            # Each second one is the SDK's, by a member that nobody knows.
            params: dict[str, Any] = {"name": "subject", "arguments": {"n": number}}
            client.request(number, "tools/call", params | ({"example": 1} if number % 2 else {}))
        for _ in range(10):
            await client.next()
        client.received.sort(key=lambda frame: frame["id"])

    await both_ways(tmp_path, era, script, lambda: [tool])

    assert [arguments["n"] for arguments in tool.calls] == [*range(10)] * 2


@both_eras
async def test_calls_are_the_sdks_while_somebody_traces_them(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", trace.NoOpTracerProvider)

    async def script(client: Line) -> None:
        client.call(1, "plain")
        await client.answer(1)

    await both_ways(tmp_path, era, script, taken=0)


async def test_a_second_greeting_of_another_revision_holds_for_the_call_behind_it(tmp_path: Path) -> None:
    async def script(client: Line) -> None:
        greeting = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        client.send(id=1, method="initialize", params=greeting)
        client.call(2, "structured")
        client.call(3, "structured")
        for _ in range(3):
            await client.next()
        client.received.sort(key=lambda frame: frame["id"])
        del client.received[0]["result"]["_meta"]  # names this very gateway

    answer = upstream_answer(structured={"a": 1})
    frames = await both_ways(tmp_path, "handshake", script, lambda: [fake("structured", answer=answer)], taken=0)

    assert frames[0]["result"]["protocolVersion"] == "2024-11-05"


@both_eras
async def test_a_result_no_revision_knows_is_the_same_error(tmp_path: Path, era: str) -> None:
    odd = ToolResult(content=(text_block("a"),), other={"content": 5})

    async def script(client: Line) -> None:
        client.call(1, "subject")
        await client.next()

    await both_ways(tmp_path, era, script, lambda: [fake("subject", answer=odd)])


@both_eras
async def test_the_end_of_a_broken_line_is_no_call(tmp_path: Path, era: str) -> None:
    async def script(client: Line) -> None:
        os.write(client.to_server, b'{"begun')
        for _ in range(10):
            await asyncio.sleep(0)  # what is in a pipe is read at the next turn of the event loop
        client.call(7, "plain")
        assert (await client.next())["error"]["code"] == -32700
        client.call(8, "plain")
        await client.answer(8)

    await both_ways(tmp_path, era, script)


async def test_a_plain_call_begins_one_turn_of_the_event_loop_after_it_arrives(tmp_path: Path) -> None:
    """A turn costs as much as a stage of the pipeline, so no task is woken only to hand the call on."""
    async with line(tmp_path, "handshake", [], short=True) as client:
        turns: list[int] = []
        count = 0

        def turn() -> None:
            nonlocal count
            count += 1
            turns.append(client.calls.taken)
            if count < 20:
                asyncio.get_running_loop().call_soon(turn)

        client.call(1, "plain")
        turn()
        await client.answer(1)

        # Written before the loop's next look at its pipes: begun as soon as it has looked.
        assert turns.index(1) <= 2


def noting(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, notes: list[str]) -> None:
    """Note each call of a method before it runs."""
    run = getattr(owner, name)

    def noted(*arguments: Any, **named: Any) -> Any:
        notes.append(name)
        return run(*arguments, **named)

    monkeypatch.setattr(owner, name, noted)


async def test_the_decision_is_recorded_before_the_answer_and_the_outcome_right_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with line(tmp_path, "handshake", [], short=True) as client:
        order: list[str] = []
        for owner, name in ((AuditLog, "decision"), (FrameWriter, "post_result"), (AuditLog, "outcome")):
            noting(monkeypatch, owner, name, order)
        client.call(1, "plain")
        client.call(2, "plain")
        await client.answer(2)

    assert order == ["decision", "post_result", "outcome"] * 2


@pytest.mark.parametrize("how", ["cancelled", "hung up", "fails"])
async def test_a_call_without_an_answer_has_its_outcome_recorded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    outcomes: list[str] = []

    async def waits(ctx: ToolContext) -> str:
        assert ctx.client is not None
        await ctx.client.notify("notifications/message", {"level": "error", "data": "began"})
        if how == "fails":
            raise UpstreamError(-32055, "not today", None)
        await anyio.sleep_forever()
        return ""

    async with line(tmp_path, "handshake", [AskingTool(waits)], short=True) as client:
        noting(monkeypatch, AuditLog, "outcome", outcomes)
        client.call(5, "Asks")
        await client.next()
        if how == "cancelled":
            client.send(method="notifications/cancelled", params={"requestId": 5})
            client.call(6, "plain")
            await client.answer(6)
        elif how == "fails":
            await client.answer(5)
        else:
            await client.rest()

    assert len(outcomes) == (2 if how == "cancelled" else 1)


async def test_what_a_call_leaves_for_afterwards_is_its_own_and_done_once() -> None:
    known: Any = None
    call, done = FastCall(1, {}, known, known), list[str]()

    def work(name: str) -> Callable[[], Awaitable[None]]:
        async def note() -> None:
            done.append(name)

        return note

    later = call.for_call("a")
    assert not later("a", work("nobody promised to do it"))
    call.will_do_afterwards()
    assert later("a", work("its own"))
    assert not later("b", work("of a call that it makes"))
    await call.do_afterwards()
    await call.do_afterwards()

    assert done == ["its own"]
    assert not later("a", work("too late"))
