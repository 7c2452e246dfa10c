"""Upstreams over streamable HTTP: what a client sees of good, refusing, restarting and hostile ones."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from goat_mcp.core.errors import ErrorCode, UpstreamError
from goat_mcp.upstreams.status import UpstreamState
from tests.free_port import free_port
from tests.upstreams.fleet import fleet, serving_at, warm

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMES = ("echo", "everything", "work", "mark", "die", "hang", "refuse", "seen", "grow")
LISTED = [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]


def web_server(port: int, log: Path) -> AbstractContextManager[None]:
    return serving_at(port, "good.py", "http", port, log)


def entry(port: int, **members: Any) -> dict[str, Any]:
    return {"type": "http", "url": f"http://127.0.0.1:{port}/mcp", **members}


@pytest.mark.parametrize(("version", "era"), [("", "stateless"), ("2025-11-25", "handshake")])
async def test_calls_of_both_eras_pass_whole(tmp_path: Path, version: str, era: str) -> None:
    port = free_port()
    entries = {"web": entry(port)}
    if version:
        warm(tmp_path, entries, {"web": LISTED}, version)
    with web_server(port, tmp_path / "log"):
        async with fleet(tmp_path, entries) as running:
            seen = (await running.call("mcp__web__seen", meta={"vendor/x": [None, 1]})).wire()
            everything = (await running.call("mcp__web__everything")).wire()
            with pytest.raises(UpstreamError) as refused:
                await running.call("mcp__web__refuse", {"a": 1})

    assert seen["structuredContent"]["era"] == era
    assert seen["structuredContent"]["meta"]["vendor/x"] == [None, 1]
    assert everything["structuredContent"] == {"none": None, "big": 123456789012345678901234567890, "list": [1, 2.5]}
    assert everything["_meta"] == {"vendor/answer": 42}
    assert (refused.value.code, refused.value.data) == (-32602, {"asked": {"a": 1}})


# REL-7
async def test_the_first_call_of_a_cold_process_mirrors_arguments_into_headers(tmp_path: Path) -> None:
    port = free_port()
    entries = {"web": entry(port)}
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "region": {"type": "string", "x-mcp-header": "Region"}},
    }
    warm(tmp_path, entries, {"web": [{"name": "echo", "inputSchema": schema}]}, "2026-07-28")
    with web_server(port, tmp_path / "log"):
        async with fleet(tmp_path, entries) as running:
            # The SDK's server refuses a call whose headers do not repeat these arguments.
            result = await running.call("mcp__web__echo", {"text": "hello", "region": "süd ost"})

    assert result.text == "hello"


# FLW-2
async def test_progress_and_cancellation_pass(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"
    heard: list[float] = []

    async def listen(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        heard.append(done)

    with web_server(port, log):
        async with fleet(tmp_path, {"web": entry(port)}) as running:
            await running.call("mcp__web__work", {"steps": 3}, progress=listen, wants_progress=True)
            async with anyio.create_task_group() as group:
                group.start_soon(running.call, "mcp__web__hang")
                await running.until(lambda: log.exists() and "hang" in log.read_text())
                group.cancel_scope.cancel()
            await running.until(lambda: "cancelled" in log.read_text())

    assert heard == [1.0, 2.0, 3.0]


# LIF-5
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
async def test_after_a_restart_of_the_server_the_next_call_runs_once(tmp_path: Path, version: str) -> None:
    port, log = free_port(), tmp_path / "log"
    entries = {"web": entry(port)}
    warm(tmp_path, entries, {"web": LISTED}, version)
    async with fleet(tmp_path, entries) as running:
        with web_server(port, log):
            await running.call("mcp__web__mark")
        with web_server(port, log):
            result = await running.call("mcp__web__mark")

    assert result.text == "marked"
    assert log.read_text().splitlines() == ["mark", "mark"]


# ISO-4
async def test_a_server_that_is_down_says_so_and_does_not_hurt_the_tools_that_are_listed(tmp_path: Path) -> None:
    port = free_port()
    entries = {"web": entry(port)}
    warm(tmp_path, entries, {"web": LISTED}, "2026-07-28")
    async with fleet(tmp_path, entries) as running:
        error = await running.failing("mcp__web__echo", {"text": "x"})
        names = running.registry.names()

    assert error.code is ErrorCode.UPSTREAM_DOWN
    assert error.message.startswith("upstream web is down: ConnectError")
    assert len(names) == len(NAMES)


async def test_a_server_that_dies_during_a_call_leaves_its_outcome_open(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"
    with web_server(port, log):
        async with fleet(tmp_path, {"web": entry(port)}) as running:
            error = await running.failing("mcp__web__die")

    assert error.code is ErrorCode.OUTCOME_UNKNOWN
    assert log.read_text().splitlines() == ["die"]


Answer = Callable[[bytes], bytes]


@asynccontextmanager
async def canned_server(answer: Callable[[bytes], bytes | Awaitable[bytes]]) -> AsyncGenerator[tuple[int, list[bytes]]]:
    """An HTTP server of one request per connection that answers with bytes. Yields its port and what it was sent."""
    requests: list[bytes] = []
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port: int = listener.extra(anyio.abc.SocketAttribute.local_port)

    async def serve(stream: SocketStream) -> None:
        async with stream:
            head = b""
            try:
                while b"\r\n\r\n" not in head:
                    head += await stream.receive()
                size = next(
                    (
                        int(line.split(b":")[1])
                        for line in head.lower().split(b"\r\n")
                        if line.startswith(b"content-length")
                    ),
                    0,
                )
                while len(head.split(b"\r\n\r\n", 1)[1]) < size:
                    head += await stream.receive()
                requests.append(head)
                answered = answer(head)
                await stream.send(answered if isinstance(answered, bytes) else await answered)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass

    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        yield port, requests
        group.cancel_scope.cancel()
    await listener.aclose()


def response(status: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def test_refused_credentials_are_named_as_such_and_not_tried_again_at_once(tmp_path: Path) -> None:
    async with canned_server(
        lambda request: response("401 Unauthorized", b'{"error":"x"}', content_type="application/json")
    ) as (port, requests):
        entries = {"web": entry(port, headers={"Authorization": "Bearer wrong-canary"})}
        warm(tmp_path, entries, {"web": LISTED}, "2026-07-28")
        async with fleet(tmp_path, entries) as running:
            await running.failing("mcp__web__echo")
            error = await running.failing("mcp__web__echo")
            status = running.status("web")

    assert error.code is ErrorCode.AUTH
    assert "HTTP 401" in error.message and "canary" not in error.message
    assert (status.state, status.reason_code) == (UpstreamState.FAILED, "auth_required")
    assert len(requests) == 1
    assert b"wrong-canary" in requests[0]


async def test_a_redirect_to_another_origin_is_not_followed(tmp_path: Path) -> None:
    async with (
        canned_server(lambda request: response("200 OK")) as (elsewhere, stolen),
        canned_server(
            lambda request: response("307 Temporary Redirect", location=f"http://127.0.0.1:{elsewhere}/mcp")
        ) as (port, _),
    ):
        entries = {"web": entry(port, headers={"Authorization": "Bearer secret"})}
        warm(tmp_path, entries, {"web": LISTED}, "2026-07-28")
        async with fleet(tmp_path, entries) as running:
            error = await running.failing("mcp__web__echo")

    assert error.code is ErrorCode.UPSTREAM_DOWN
    assert "not followed" in error.message
    assert stolen == []


@pytest.mark.parametrize("says_size", [True, False])
async def test_an_endless_answer_is_cut_off(tmp_path: Path, says_size: bool) -> None:
    def answer(request: bytes) -> bytes:
        if b"tools/call" in request:
            pad = b'{"jsonrpc":"2.0","id":1,"result":{"pad":"' + b"x" * (17 * 1024 * 1024)
            whole = response("200 OK", pad, content_type="application/json")
            return whole if says_size else whole.replace(b"content-length", b"x-length", 1)
        body = b'{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{},"tools":[]}}'
        return response("200 OK", body, content_type="application/json")

    async with canned_server(answer) as (port, _):
        entries = {"web": entry(port)}
        warm(tmp_path, entries, {"web": LISTED}, "2026-07-28")
        async with fleet(tmp_path, entries) as running:
            error = await running.failing("mcp__web__echo")

    assert error.code is ErrorCode.UPSTREAM
    assert "larger than 16777216 bytes" in error.message


def body_of(request: bytes) -> dict[str, Any]:
    return json.loads(request.split(b"\r\n\r\n", 1)[1] or b"{}")


def answered(request: bytes, result: dict[str, Any], **headers: str) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": body_of(request)["id"], "result": result}).encode()
    return response("200 OK", body, content_type="application/json", **headers)


UNKNOWN_SESSION = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: no such session"}}'


# LIF-5
@pytest.mark.parametrize(
    "gone",
    [
        response("404 Not Found"),
        response("400 Bad Request", UNKNOWN_SESSION, content_type="application/json"),
        response("500 Internal Server Error", UNKNOWN_SESSION, content_type="application/json"),
    ],
    ids=["404", "400", "500"],
)
async def test_a_session_that_is_gone_is_opened_again_once_and_the_call_repeated(tmp_path: Path, gone: bytes) -> None:
    sessions = iter(["first", "second"])

    def answer(request: bytes) -> bytes:
        if b"notifications/" in request or not request.startswith(b"POST"):
            return response("202 Accepted")
        match body_of(request)["method"]:
            case "initialize":
                info = {"name": "s", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
                return answered(request, result, mcp_session_id=next(sessions))
            case "tools/call" if b"mcp-session-id: first" in request.lower():
                return gone
            case "tools/call":
                return answered(request, {"content": [{"type": "text", "text": "again"}]})
            case _:
                return answered(request, {"tools": []})

    async with canned_server(answer) as (port, requests):
        entries = {"web": entry(port)}
        warm(tmp_path, entries, {"web": LISTED}, "2025-11-25")
        async with fleet(tmp_path, entries) as running:
            result = await running.call("mcp__web__echo")
            status = running.status("web")

    assert result.text == "again"
    assert len([request for request in requests if b'"tools/call"' in request]) == 2
    assert status.state is UpstreamState.READY


async def test_one_that_refuses_our_revision_and_names_it_is_asked_once_more(tmp_path: Path) -> None:
    """ERA-2: -32022 with a revision of ours among the supported ones is no proof of the other era."""
    refusals = 1

    def answer(request: bytes) -> bytes:
        nonlocal refusals
        if b"server/discover" in request and refusals:
            refusals -= 1
            error = {"code": -32022, "message": "unsupported", "data": {"supported": ["2026-07-28"]}}
            body = {"jsonrpc": "2.0", "id": json.loads(request.partition(b"\r\n\r\n")[2])["id"], "error": error}
            return response("400 Bad Request", json.dumps(body).encode(), content_type="application/json")
        if b"server/discover" in request:
            return answered(request, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
        return answered(request, {"tools": LISTED})

    async with canned_server(answer) as (port, requests), fleet(tmp_path, {"web": entry(port)}) as running:
        status = running.status("web")

    methods = [json.loads(request.partition(b"\r\n\r\n")[2])["method"] for request in requests]
    assert status.state is UpstreamState.READY
    assert methods[:3] == ["server/discover", "server/discover", "tools/list"]


# ERA-2
async def test_a_server_error_in_answer_to_the_probe_proves_no_era(tmp_path: Path) -> None:
    broken = True

    def answer(request: bytes) -> bytes:
        if b"notifications/" in request or not request.startswith(b"POST"):
            return response("202 Accepted")
        match body_of(request)["method"]:
            case "server/discover" if broken:
                return response("500 Internal Server Error")
            case "server/discover":
                return answered(request, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
            case "initialize":
                info = {"name": "s", "version": "1"}
                return answered(request, {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info})
            case "tools/call":
                return answered(request, {"content": []})
            case _:
                return answered(request, {"tools": LISTED})

    versions: list[str] = []
    async with canned_server(answer) as (port, requests):
        for broken in (True, False):  # noqa: B007  # the server looks at it
            async with fleet(tmp_path, {"web": entry(port)}) as running:
                await running.call("mcp__web__echo")
                versions.append(running.status("web").version)

    asked = [body_of(request)["method"] for request in requests if request.startswith(b"POST")]
    assert versions == ["2025-11-25", "2026-07-28"]
    assert asked.count("tools/call") == asked.count("server/discover") == 2


async def test_one_broken_connection_does_not_break_the_calls_beside_it(tmp_path: Path) -> None:
    broke = anyio.Event()

    async def after_the_break(request: bytes) -> bytes:
        await broke.wait()
        await anyio.sleep(0.2)
        return answered(request, {"content": [{"type": "text", "text": "unharmed"}]})

    def answer(request: bytes) -> bytes | Awaitable[bytes]:
        if b"server/discover" in request:
            return answered(request, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
        if b"tools/list" in request:
            return answered(request, {"tools": LISTED})
        if b'"die"' in request:
            broke.set()
            return b""
        return after_the_break(request)

    texts: list[str] = []
    codes: list[ErrorCode] = []
    async with canned_server(answer) as (port, _):
        entries = {"web": entry(port)}
        warm(tmp_path, entries, {"web": LISTED}, "2026-07-28")
        async with fleet(tmp_path, entries) as running, anyio.create_task_group() as group:

            async def beside() -> None:
                texts.append((await running.call("mcp__web__echo")).text)

            group.start_soon(beside)
            codes.append((await running.failing("mcp__web__die")).code)

    assert codes == [ErrorCode.OUTCOME_UNKNOWN]
    assert texts == ["unharmed"]


async def test_a_server_error_during_a_call_leaves_its_outcome_open_and_a_rate_limit_does_not(tmp_path: Path) -> None:
    statuses = iter(["502 Bad Gateway", "429 Too Many Requests"])

    def answer(request: bytes) -> bytes:
        if b"tools/call" in request:
            return response(next(statuses))
        return answered(request, {"supportedVersions": ["2026-07-28"], "capabilities": {}, "tools": LISTED})

    async with canned_server(answer) as (port, _):
        entries = {"web": entry(port)}
        warm(tmp_path, entries, {"web": LISTED}, "2026-07-28")
        async with fleet(tmp_path, entries) as running:
            tool = running.registry.get("mcp__web__echo")
            assert tool is not None
            bad_gateway = await running.failing("mcp__web__echo")
            warm(tmp_path, entries, {"web": LISTED}, "2026-07-28")
            async with fleet(tmp_path, entries) as again:
                limited = await again.failing("mcp__web__echo")

    assert bad_gateway.code is ErrorCode.OUTCOME_UNKNOWN
    assert limited.code is ErrorCode.RATE


# REL-6
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (response("302 Found", location="http://127.0.0.1:1/elsewhere"), "HTTP 302: it redirects"),
        (response("200 OK", b"<html>log in</html>", content_type="text/html"), "text/html instead of JSON"),
        (response("200 OK", b"", content_type="application/json"), "it answered with nothing"),
    ],
    ids=["redirect", "html", "empty"],
)
async def test_an_answer_that_is_none_is_an_error_of_ours_that_names_the_upstream(
    tmp_path: Path, wrong: bytes, said: str
) -> None:
    def answer(request: bytes) -> bytes:
        if b"tools/call" in request:
            return wrong
        return answered(request, {"supportedVersions": ["2026-07-28"], "capabilities": {}, "tools": []})

    async with canned_server(answer) as (port, _):
        entries = {"web": entry(port)}
        warm(tmp_path, entries, {"web": LISTED}, "2026-07-28")
        async with fleet(tmp_path, entries) as running:
            error = await running.failing("mcp__web__echo")

    assert "web" in error.message
    assert said in error.message
    assert "pydantic" not in error.message
