"""The UP attacks by upstreams over HTTP: streams without an end, bombs, and addresses that are commands (R-UP-9)."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from goat_mcp.core.errors import ErrorCode, ToolError
from tests.repetitions import times
from tests.upstreams.fleet import Fleet, fleet, server, warm
from tests.upstreams.oauth.guarded_server import logins_of
from tests.upstreams.test_hostile_upstreams import peak_memory_bytes
from tests.upstreams.test_http_upstreams import LISTED, answered, body_of, canned_server, entry, response

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

MIB = 1024 * 1024
DISCOVERED: dict[str, Any] = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "tools": LISTED}
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@asynccontextmanager
async def web(
    folder: Path, answer: Callable[[bytes], bytes], **members: Any
) -> AsyncGenerator[tuple[Fleet, list[bytes]]]:
    """A fleet with `web`, whose calls are answered by `answer`, and a healthy one."""

    def reply(request: bytes) -> bytes:
        return answer(request) if b'"tools/call"' in request else answered(request, DISCOVERED)

    async with canned_server(reply) as (port, requests):
        entries = {"web": entry(port, **members), "good": server("raw.py", "plain")}
        warm(folder, entries, {"web": LISTED}, "2026-07-28")
        async with fleet(folder, entries) as running:
            yield running, requests


async def healthy(running: Fleet) -> None:
    assert (await running.call("mcp__good__ping")).text == "pong"


def event(message: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(message).encode() + b"\n\n"


def notice(number: int) -> bytes:
    return event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": number}})


@dataclass
class Pouring:
    """A server that answers each call with a stream of `piece`, over and over, `times` or until its client leaves."""

    piece: bytes
    times: int
    first: bytes = b""
    sent_bytes: int = 0
    requests: list[bytes] = field(default_factory=list[bytes])

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            try:
                request = b""
                while not request.endswith(b"}"):
                    request += await stream.receive()
                self.requests.append(request)
                if b'"tools/call"' not in request:
                    await stream.send(answered(request, DISCOVERED))
                    return
                await stream.send(STREAM_HEAD + self.first)
                for _ in range(self.times):
                    await stream.send(self.piece)
                    self.sent_bytes += len(self.piece)
                await anyio.sleep_forever()
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass


@pytest.mark.parametrize(
    ("pouring", "code"),
    [
        pytest.param(Pouring(b"x" * MIB, 200, b"data: "), ErrorCode.UPSTREAM, id="UP-34 a line without an end"),
        pytest.param(
            Pouring((b"data: " + b"y" * 1000 + b"\n") * 500, 400),
            ErrorCode.UPSTREAM,
            id="UP-34 an event without an end",
        ),
        pytest.param(Pouring(b": hm\n\n" * 100, 10), ErrorCode.TIMEOUT, id="UP-34 comments and silence"),
        pytest.param(
            Pouring(b"", 1, b"\xef\xbb\xbfid: 1\r\rretry: 99\r\n\n\rdata:\r\r"), ErrorCode.TIMEOUT, id="UP-34 line ends"
        ),
    ],
)
async def test_a_stream_without_an_answer_ends_and_is_not_held(
    tmp_path: Path, pouring: Pouring, code: ErrorCode
) -> None:
    """R-UP-9: a cap for each event, limits for the silence and the whole."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port: int = listener.extra(anyio.abc.SocketAttribute.local_port)
    failures: list[ToolError] = []
    grown = 0
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, pouring.serve)
        entries = {"web": entry(port, timeout_s=30, idle_timeout_s=2), "good": server("raw.py", "plain")}
        warm(tmp_path, entries, {"web": LISTED}, "2026-07-28")
        async with fleet(tmp_path, entries) as running:
            before = peak_memory_bytes()
            async with anyio.create_task_group() as calls:

                async def call() -> None:
                    failures.append(await running.failing("mcp__web__echo"))

                calls.start_soon(call)
                await anyio.sleep(0.2)
                await healthy(running)
            grown = peak_memory_bytes() - before
            await healthy(running)
        group.cancel_scope.cancel()
    await listener.aclose()

    assert [failure.code for failure in failures] == [code]
    assert grown < 128 * MIB


async def test_up_34_a_million_events_do_not_hide_the_answer_or_fill_memory(tmp_path: Path) -> None:
    """The full size is a million."""
    events = times(50_000, in_full_run=1_000_000)

    def answer(request: bytes) -> bytes:
        flood = notice(1) * events
        result = {"content": [{"type": "text", "text": "at last"}]}
        last = event({"jsonrpc": "2.0", "id": body_of(request)["id"], "result": result})
        return STREAM_HEAD + flood + last

    async with web(tmp_path, answer, timeout_s=120) as (running, _):
        before = peak_memory_bytes()
        result = await running.call("mcp__web__echo")
        grown = peak_memory_bytes() - before
        await healthy(running)

    assert result.text == "at last"
    assert grown < 64 * MIB + 2 * events * len(notice(1)), "the flood itself is held by the test's server"


LOGIN = "http://x/$(touch ran)"


@pytest.mark.parametrize("login", [LOGIN, "javascript:alert(1)", "file:///etc/passwd", "https://x.test/;touch ran"])
async def test_up_35_a_login_address_is_never_followed_or_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: str
) -> None:
    """R-UP-9, CVE-2025-6514: while nobody logs in, what an upstream names is neither asked nor opened."""
    monkeypatch.chdir(tmp_path)
    opened: list[Any] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    metadata = json.dumps({"authorization_endpoint": login, "issuer": login}).encode()

    def answer(request: bytes) -> bytes:
        challenge = f'Bearer resource_metadata="{login}"'
        return response("401 Unauthorized", metadata, content_type="application/json", www_authenticate=challenge)

    async with canned_server(answer) as (port, requests):
        entries = {"web": entry(port), "good": server("raw.py", "plain")}
        warm(tmp_path, entries, {"web": LISTED}, "2026-07-28")
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)) as running:
            error = await running.failing("mcp__web__echo")
            status = running.status("web")
            await healthy(running)

    assert error.code is ErrorCode.AUTH
    assert status.reason_code == "auth_required"
    assert login not in error.message
    assert {request.split(b" ")[1] for request in requests} == {b"/mcp"}
    assert opened == []
    assert not (tmp_path / "ran").exists()


@cache
def bomb(encoding: str) -> bytes:
    """200 MB of blanks in 200 KB, packed piece by piece so that the test itself never holds them."""
    packer = zlib.compressobj(9, wbits=31 if encoding == "gzip" else 15)
    packed = b"".join(packer.compress(b" " * MIB) for _ in range(200)) + packer.flush()
    return response("200 OK", packed, content_type="application/json", content_encoding=encoding)


PACKED_ANYHOW = response("200 OK", b"x", content_type="application/json", content_encoding="zz")
WRONG = {
    "a huge challenge": lambda: response("401 Unauthorized", b"", www_authenticate="Bearer " + "x" * 2 * MIB),
    "many headers": lambda: response("401 Unauthorized", b"", **{f"x-{number}": "y" * 60_000 for number in range(200)}),
    "a gzip bomb": lambda: bomb("gzip"),
    "a deflate bomb": lambda: bomb("deflate"),
    "a bomb as refusal": lambda: bomb("gzip").replace(b"200 OK", b"500 Oops"),
    "a bomb as refused login": lambda: bomb("gzip").replace(b"200 OK", b"403 No"),
    "packed in an unknown way": lambda: response(
        "200 OK", b"x", content_type="application/json", content_encoding="zz"
    ),
    "a picture": lambda: response("200 OK", b"\x89PNG", content_type="image/png"),
    "no type": lambda: response("200 OK", b"{}"),
    "nothing": lambda: response("204 No Content"),
    "reset content": lambda: response("205 Reset Content", b"x"),
    "not JSON": lambda: response("200 OK", b"{half", content_type="application/json"),
    "half an answer": lambda: b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{",
    "no HTTP": lambda: b"SSH-2.0-OpenSSH_9\r\n",
    "hang up": lambda: b"",
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_up_36_a_refusal_of_any_kind_is_one_clean_error(tmp_path: Path, wrong: str) -> None:
    """R-UP-9"""
    async with web(tmp_path, lambda request: WRONG[wrong](), timeout_s=20) as (running, requests):
        WRONG[wrong]()  # what making it costs is not what it costs us
        before = peak_memory_bytes()
        error = await running.failing("mcp__web__echo")
        grown = peak_memory_bytes() - before
        await healthy(running)

    assert error.code in (ErrorCode.UPSTREAM, ErrorCode.UPSTREAM_DOWN, ErrorCode.OUTCOME_UNKNOWN, ErrorCode.AUTH), (
        error.code
    )
    assert "web" in error.message and len(error.message) < 600
    assert grown < 64 * MIB
    assert all(b"accept-encoding: identity" in request.lower() for request in requests)
