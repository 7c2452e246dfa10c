"""Calls to HTTP upstreams that go past the SDK's dispatcher (design 0019)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from goat_mcp.core.errors import ErrorCode
from goat_mcp.upstreams.faults import FaultKind, TransportFault
from goat_mcp.upstreams.transports.direct_posts import DirectPosts
from tests.free_port import free_port
from tests.upstreams.fleet import fleet, serving_at, warm
from tests.upstreams.test_http_upstreams import answered, body_of, canned_server, entry, response

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]
LISTED = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "work", "hang")]
INFO = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
WAIT_S = 60.0
both_eras = pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])


def entries(port: int, folder: Path, version: str, **members: Any) -> dict[str, Any]:
    known = {"web": entry(port, **members)}
    warm(folder, known, {"web": LISTED}, version)
    return known


@both_eras
async def test_a_call_that_nobody_follows_goes_past_the_dispatcher(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods: list[str] = []
    send = JSONRPCDispatcher.send_raw_request

    async def noted(self: Any, method: str, *arguments: Any, **options: Any) -> Any:
        methods.append(method)
        return await send(self, method, *arguments, **options)

    async def listen(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        pass

    monkeypatch.setattr(JSONRPCDispatcher, "send_raw_request", noted)
    port = free_port()
    with serving_at(port, "good.py", "http", port, tmp_path / "log"):
        async with fleet(tmp_path, entries(port, tmp_path, version)) as running:
            answer = (await running.call("mcp__web__echo", {"text": "hi"})).wire()
            assert "tools/call" not in methods
            await running.call("mcp__web__work", {"steps": 1}, progress=listen, wants_progress=True)

    assert "hi" in str(answer["content"])
    assert methods.count("tools/call") == 1


@both_eras
async def test_a_cancelled_call_is_cancelled_at_the_upstream(tmp_path: Path, version: str) -> None:
    port, log = free_port(), tmp_path / "log"
    with serving_at(port, "good.py", "http", port, log):
        async with fleet(tmp_path, entries(port, tmp_path, version)) as running:
            async with anyio.create_task_group() as group:
                group.start_soon(running.call, "mcp__web__hang")
                await running.until(lambda: log.exists() and "hang" in log.read_text())
                group.cancel_scope.cancel()

            await running.until(lambda: "cancelled" in log.read_text())


def as_server(call: Callable[[bytes], bytes | Awaitable[bytes]], **headers: str) -> Any:
    """A server of the handshake era; `call` answers calls and the GET of the session's stream."""

    def answer(request: bytes) -> bytes | Awaitable[bytes]:
        if request.startswith(b"GET") or b'"tools/call"' in request:
            return call(request)
        if b"notifications/" in request or not request.startswith(b"POST"):
            return response("202 Accepted")
        if body_of(request)["method"] == "initialize":
            return answered(request, INFO, mcp_session_id="one", **headers)
        return answered(request, {"tools": LISTED})

    return answer


def result(request_id: Any, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": {"content": [{"type": "text", "text": text}]}}


def events(*messages: Mapping[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(message).encode() + b"\n\n" for message in messages)


async def test_an_answer_on_the_stream_of_the_session_reaches_its_call(tmp_path: Path) -> None:
    asked: list[Any] = []
    is_asked, over = anyio.Event(), anyio.Event()

    async def call(request: bytes) -> bytes:
        if request.startswith(b"GET"):
            await is_asked.wait()
            return response("200 OK", events(result(asked[0], "another way")), content_type="text/event-stream")
        asked.append(body_of(request)["id"])
        is_asked.set()
        await over.wait()  # this response never comes
        return b""

    async with (
        canned_server(as_server(call)) as (port, _),
        fleet(tmp_path, entries(port, tmp_path, "2025-11-25", timeout_s=30)) as running,
    ):
        with anyio.fail_after(WAIT_S / 4):
            answer = await running.call("mcp__web__echo")
        over.set()

    assert answer.text == "another way"


async def test_answers_in_each_others_responses_find_their_calls(tmp_path: Path) -> None:
    asked: list[Any] = []
    both = anyio.Event()

    async def call(request: bytes) -> bytes:
        if request.startswith(b"GET"):
            return response("405 Method Not Allowed")
        mine = body_of(request)["id"]
        asked.append(mine)
        if len(asked) == 2:
            both.set()
        await both.wait()
        other = next(one for one in asked if one != mine)
        body = json.dumps(result(other, f"for {other}")).encode()
        return response("200 OK", body, content_type="application/json")

    texts: list[str] = []
    async with (
        canned_server(as_server(call)) as (port, _),
        fleet(tmp_path, entries(port, tmp_path, "2025-11-25", timeout_s=30)) as running,
    ):

        async def one() -> None:
            texts.append((await running.call("mcp__web__echo")).text)

        with anyio.fail_after(WAIT_S / 4):
            async with anyio.create_task_group() as group:
                group.start_soon(one)
                group.start_soon(one)

    assert sorted(texts) == sorted(f"for {one}" for one in asked)


async def test_a_call_carries_the_session_and_the_cookie_of_the_greeting(tmp_path: Path) -> None:
    """Balancers find the server of a session by its cookie."""
    cookie = {"set_cookie": "place=7; Path=/"}

    def call(request: bytes) -> bytes:
        is_call = request.startswith(b"POST")
        return answered(request, {"content": []}) if is_call else response("405 Method Not Allowed")

    server = as_server(call, **cookie)
    async with (
        canned_server(server) as (port, requests),
        fleet(tmp_path, entries(port, tmp_path, "2025-11-25")) as running,
    ):
        await running.call("mcp__web__echo")

    [called] = [request.lower() for request in requests if b'"tools/call"' in request]
    for header in (b"mcp-session-id: one", b"cookie: place=7", b"mcp-protocol-version: 2025-11-25"):
        assert header in called


async def test_the_end_of_the_connection_ends_the_calls_that_are_open(tmp_path: Path) -> None:
    is_asked, codes = anyio.Event(), list[ErrorCode]()

    async def call(request: bytes) -> bytes:
        is_asked.set()
        await anyio.sleep_forever()
        return b""

    async with (
        canned_server(as_server(call)) as (port, _),
        anyio.create_task_group() as group,
        fleet(tmp_path, entries(port, tmp_path, "2025-11-25"), drain_s=0.1) as running,
    ):

        async def one() -> None:
            codes.append((await running.failing("mcp__web__echo")).code)

        group.start_soon(one)
        await is_asked.wait()

    assert codes == [ErrorCode.OUTCOME_UNKNOWN]


@dataclass
class Upstream:
    """Answers each request of a connection with the next of its responses."""

    responses: list[httpx2.Response]
    requests: list[httpx2.Request] = field(default_factory=list[httpx2.Request])
    session_id: str | None = "one"

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return self.responses.pop(0)


class Broken(httpx2.AsyncByteStream):
    """A body of this beginning, whose connection breaks."""

    def __init__(self, begun: bytes) -> None:
        self._begun = begun

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._begun
        raise httpx2.StreamError("the connection broke")


def stream(body: bytes | Broken) -> httpx2.Response:
    kind = {"content-type": "text/event-stream"}
    if isinstance(body, Broken):
        return httpx2.Response(200, headers=kind, stream=body)
    return httpx2.Response(200, headers=kind, content=body)


@asynccontextmanager
async def posts(*responses: httpx2.Response) -> AsyncGenerator[tuple[DirectPosts, Upstream, list[Any]]]:
    """Direct posts, what they talk to, and what the dispatcher gets."""
    upstream, heard = Upstream(list(responses)), list[Any]()
    send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](8)
    async with (
        httpx2.AsyncClient(transport=httpx2.MockTransport(upstream.answer)) as client,
        send,
        receive,
        anyio.create_task_group() as group,
    ):
        direct = DirectPosts(client, "http://upstream/mcp", upstream, send, group, max_event_bytes=1000)
        direct.on_log = lambda method, params: heard.append((method, params))
        yield direct, upstream, heard
        heard += [item.message for item in _waiting(receive)]


def _waiting(receive: Any) -> list[Any]:
    return [receive.receive_nowait() for _ in range(receive.statistics().current_buffer_used)]


async def test_log_messages_are_heard_before_the_answer_and_requests_go_to_the_dispatcher() -> None:
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
    question = {"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": {"message": "Who?"}}

    async with posts(stream(events(log, question, result(1, "done")))) as (direct, _, heard):
        answer = await direct.ask(1, {"name": "echo"}, {})
        assert heard == [("notifications/message", log["params"])]

    assert isinstance(answer, JSONRPCResponse) and answer.result == result(1, "done")["result"]
    assert heard[1:] == [JSONRPCRequest(jsonrpc="2.0", id=5, method="elicitation/create", params={"message": "Who?"})]


class Slow(httpx2.AsyncByteStream):
    """A body that goes on after its answer: with what is given, or with nothing and no end."""

    def __init__(self, *rest: bytes) -> None:
        self._rest = rest
        self.read = list[bytes]()
        self.is_closed = anyio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield events(result(1, "done"))
        await anyio.lowlevel.checkpoint()
        for part in self._rest:
            self.read.append(part)
            yield part
        if not self._rest:
            await anyio.sleep_forever()

    async def aclose(self) -> None:
        self.is_closed.set()


async def test_a_response_is_read_to_its_end_after_its_answer_for_nobody_waits_for_it() -> None:
    """A connection is used again only if all of the response was read."""
    body = Slow(b": the end\n\n")
    async with posts(httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=body)) as (direct, *_):
        answer = await direct.ask(1, {"name": "echo"}, {})
        was_closed = body.is_closed.is_set()
        with anyio.fail_after(WAIT_S):
            await body.is_closed.wait()

    assert isinstance(answer, JSONRPCResponse)
    assert (was_closed, body.read) == (False, [b": the end\n\n"])


JUNK = [[b"data: \xff\xfe\n\n"], [b"id: \xff\nretry: x\ndata: " + b"x" * 2000 + b"\n\n"], [b"\xff"]]


@pytest.mark.parametrize("rest", JUNK)
async def test_what_comes_after_an_answer_harms_no_other_call(rest: list[bytes]) -> None:
    body = Slow(*rest)
    answers = [httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=body)]
    async with posts(*answers, stream(events(result(2, "more")))) as (direct, *_):
        await direct.ask(1, {"name": "echo"}, {})
        with anyio.fail_after(WAIT_S):
            await body.is_closed.wait()
        answer = await direct.ask(2, {"name": "echo"}, {})

    assert isinstance(answer, JSONRPCResponse)


@pytest.mark.parametrize("rest", [[], [b"data: {}\n\n", b"data: {}\n\n"]])
async def test_a_response_that_does_not_end_after_its_answer_is_closed(
    rest: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goat_mcp.upstreams.transports.direct_posts._END_WAIT_S", 0.05)
    body = Slow(*rest)
    async with posts(httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=body)) as (direct, *_):
        answer = await direct.ask(1, {"name": "echo"}, {})
        with anyio.fail_after(WAIT_S):
            await body.is_closed.wait()

    assert isinstance(answer, JSONRPCResponse)
    assert body.read == rest[:1]


@both_eras
async def test_calls_one_after_another_share_a_connection(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    connect = asyncio.BaseEventLoop.create_connection

    async def noted(self: Any, factory: Any, host: str, port: int, **options: Any) -> Any:
        opened.append(port)
        return await connect(self, factory, host, port, **options)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", noted)
    port = free_port()
    with serving_at(port, "good.py", "http", port, tmp_path / "log"):
        async with fleet(tmp_path, entries(port, tmp_path, version)) as running:
            await running.call("mcp__web__echo", {"text": "first"})
            before = opened.count(port)
            for number in range(20):
                await running.call("mcp__web__echo", {"text": str(number)})

    assert before and opened.count(port) - before <= 2


@pytest.mark.parametrize("first", [b"id: 7\nretry: 1\ndata:\n\n", Broken(b"id: 7\nretry: 1\ndata:\n\n")])
async def test_a_stream_that_ends_early_is_resumed_where_it_ended(first: bytes | Broken) -> None:
    async with posts(stream(first), httpx2.Response(503), stream(events(result(1, "late")))) as (direct, upstream, _):
        answer = await direct.ask(1, {"name": "echo"}, {"mcp-protocol-version": "2025-11-25"})

    assert isinstance(answer, JSONRPCResponse)
    assert [request.method for request in upstream.requests] == ["POST", "GET", "GET"]
    sent = upstream.requests[-1].headers
    assert (sent["last-event-id"], sent["mcp-session-id"]) == ("7", "one")
    assert (sent["mcp-protocol-version"], sent["accept"]) == ("2025-11-25", "text/event-stream")


@pytest.mark.parametrize(
    ("responses", "kind"),
    [
        ([stream(b": nothing\n\n")], FaultKind.LOST),
        ([stream(b"id: 7\nretry: 1\ndata:\n\n"), httpx2.Response(503), httpx2.Response(503)], FaultKind.LOST),
        ([stream(b"data: {}\n\n")], FaultKind.MALFORMED),
        ([stream(b"data: " + b"x" * 2000 + b"\n\n")], FaultKind.MALFORMED),
        ([httpx2.Response(200, headers={"content-type": "application/json"}, content=b"[]")], FaultKind.MALFORMED),
    ],
)
async def test_a_response_without_an_answer_is_a_fault_of_its_kind(
    responses: list[httpx2.Response], kind: FaultKind
) -> None:
    async with posts(*responses) as (direct, _, _):
        with pytest.raises(TransportFault) as failed:
            await direct.ask(1, {"name": "echo"}, {})

    assert failed.value.fault.kind is kind
    assert "pydantic" not in failed.value.fault.detail


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (202, b"", -32600),
        (404, b"", -32601),
        (418, b"short and stout", -32603),
        (400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-5,"message":"no"}}', -5),
        (200, b'{"jsonrpc":"2.0","id":null,"error":{"code":-6,"message":"no"}}', -6),
    ],
)
async def test_a_refusal_is_the_answer(status: int, body: bytes, code: int) -> None:
    refusal = httpx2.Response(status, headers={"content-type": "application/json"}, content=body)
    async with posts(refusal) as (direct, _, _):
        answer = await direct.ask(1, {"name": "echo"}, {})

    assert answer is not None and not isinstance(answer, JSONRPCResponse)
    assert answer.error.code == code
