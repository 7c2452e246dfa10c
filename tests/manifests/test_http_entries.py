"""A tool whose entry is an HTTP endpoint, against a real server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.manifests.declared import call, error_of, gateway_over, tool, write

pytestmark = pytest.mark.anyio


class Endpoint(BaseHTTPRequestHandler):
    """Answers with what it was asked, or as its path says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        if path == "/hang":
            threading.Event().wait(5)
            return
        told: dict[str, Any] = {"method": self.command, "path": self.path, "body": json.loads(body) if body else None}
        told["token"] = self.headers.get("authorization")
        answers: dict[str, tuple[int, bytes]] = {
            "/refuse": (422, b'{"error": {"message": "no such city", "suggestion": "Take another."}}'),
            "/plain": (503, b"out of order"),
            "/text": (200, b"<html>hello"),
            "/empty": (204, b""),
            "/half": (200, b'{"a":"\\ud800"}'),
            "/deep": (200, b"[" * 300 + b"]" * 300),
            "/twice": (200, b'{"a":1,"a":2}'),
            "/moved": (302, b""),
            "/busy": (429, b""),
            "/long": (200, json.dumps("x" * 6_000_000).encode()),
        }
        status, data = answers.get(path, (200, json.dumps(told).encode()))
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if status == 302:
            self.send_header("location", "/elsewhere")
        if status == 429:
            self.send_header("retry-after", "30")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def url() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def answer(tmp_path: Path, entry: Any, /, **arguments: Any) -> Any:
    write(tmp_path / "tools", tool("probe", entry, "run", timeoutMs=4000))
    gateway = gateway_over(tmp_path, tmp_path / "tools")
    async with gateway.running():
        return await call(gateway, "probe__run", **arguments)


async def test_the_input_is_posted_as_json(tmp_path: Path, url: str) -> None:
    result = await answer(tmp_path, f"{url}/{{export}}", city="Pärís")

    asked = {"method": "POST", "path": "/run", "body": {"city": "Pärís"}, "token": None}
    assert result.structured == asked


async def test_with_get_it_is_the_query(tmp_path: Path, url: str) -> None:
    result = await answer(tmp_path, {"http": {"url": f"{url}/q?a=1", "method": "GET"}}, city="a b", days=[1, 2])

    assert result.structured["path"] == "/q?a=1&city=a+b&days=1&days=2"


async def test_a_header_may_hold_a_secret(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBE_TOKEN", "canary-4711")
    entry = {"http": {"url": url, "headers": {"Authorization": "Bearer ${env:PROBE_TOKEN}"}}}

    result = await answer(tmp_path, entry)

    assert result.structured["token"] == "Bearer canary-4711"


async def test_a_header_whose_reference_leads_nowhere_is_told_and_nothing_is_sent(tmp_path: Path, url: str) -> None:
    entry = {"http": {"url": url, "headers": {"Authorization": "Bearer ${env:NO_SUCH_VARIABLE}"}}}

    error = error_of(await answer(tmp_path, entry))

    assert error["code"] == "E_CONFIG"
    assert "NO_SUCH_VARIABLE" in error["message"]


ANSWERS = {
    "/refuse": ("E_TOOL", "Http422", "no such city"),
    "/plain": ("E_TOOL", "Http503", "probe__run answered with HTTP status 503: out of order"),
    "/text": ("E_TOOL", "HttpFailed", "probe__run answered no JSON, but '<html>hello'"),
    "/half": (
        *("E_TOOL", "NotJson"),
        "probe__run gave back a dict that is no JSON value: a text of it holds \\ud800, half of a surrogate pair",
    ),
    "/deep": (
        *("E_TOOL", "NotJson"),
        "probe__run gave back a list that is no JSON value: more than 128 lists and objects lie in one another",
    ),
    "/twice": ("E_TOOL", "HttpFailed", """probe__run answered no JSON, but '{"a":1,"a":2}'"""),
    "/moved": ("E_TOOL", "Http302", "probe__run answered with HTTP status 302: nothing more; location: /elsewhere"),
    "/busy": ("E_TOOL", "Http429", "probe__run answered with HTTP status 429: nothing more; retry-after: 30"),
    "/long": ("E_TOOL", "HttpFailed", "probe__run answered with more than 5000000 bytes"),
    "/hang": ("E_TIMEOUT", "Timeout", "probe__run did not answer within 4 s and was ended"),
}


@pytest.mark.parametrize(("path", "wanted"), ANSWERS.items())
async def test_an_answer_that_is_none_is_an_error(
    tmp_path: Path, url: str, path: str, wanted: tuple[str, str, str]
) -> None:
    error = error_of(await answer(tmp_path, f"{url}{path}"))

    assert (error["code"], error["name"], error["message"]) == wanted


async def test_an_empty_answer_is_null(tmp_path: Path, url: str) -> None:
    assert (await answer(tmp_path, f"{url}/empty")).text == "null"


async def test_nobody_there_is_a_network_error(tmp_path: Path) -> None:
    assert error_of(await answer(tmp_path, "http://127.0.0.1:1/"))["code"] == "E_NETWORK"
