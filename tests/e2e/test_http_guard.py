"""What the HTTP endpoint refuses, with which status, and that the next good request is answered."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.faulty_messages import FAULTY
from tests.e2e.goat import TOKEN, HttpGoat

pytestmark = pytest.mark.e2e

PING: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/list",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
        }
    },
}
GOOD = {
    "Authorization": f"Bearer {TOKEN}",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/list",
}


def send(
    goat: HttpGoat,
    changes: Mapping[str, str | None] | None = None,
    *,
    method: str = "POST",
    path: str = "/mcp",
    body: bytes | None = None,
) -> tuple[int, str]:
    """One request, good but for what is changed: status and body. A header of None is left out."""
    parts = urlsplit(goat.url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    headers = {name: value for name, value in {**GOOD, **(changes or {})}.items() if value is not None}
    try:
        connection.request(method, path, body=json.dumps(PING).encode() if body is None else body, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer " + "x" * len(TOKEN)}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost"}, 421),
        ({"Host": "localhost:1.evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": None}, 415),
    ],
)
def test_a_request_is_refused(shared_http: HttpGoat, changes: Mapping[str, str | None], status: int) -> None:
    refused, body = send(shared_http, changes)

    assert refused == status
    assert TOKEN not in body
    assert "Read" not in body
    assert send(shared_http)[0] == 200


def test_a_token_in_the_address_is_no_token(shared_http: HttpGoat) -> None:
    assert send(shared_http, {"Authorization": None}, path=f"/mcp?token={TOKEN}&access_token={TOKEN}")[0] == 401


def test_all_wrong_tokens_look_alike(shared_http: HttpGoat) -> None:
    missing = send(shared_http, {"Authorization": None})
    wrong = send(shared_http, {"Authorization": "Bearer nonsense"})

    assert missing == wrong


def test_an_oversize_body_is_refused(shared_http: HttpGoat) -> None:
    padded = {**PING, "params": {**PING["params"], "padding": "x" * (5 * 1024 * 1024)}}

    assert send(shared_http, body=json.dumps(padded).encode())[0] == 413
    assert send(shared_http)[0] == 200


@pytest.mark.parametrize("path", ["/", "/mcp/", "/MCP", "/status", "/.well-known/oauth-protected-resource", "//mcp"])
def test_other_paths_do_not_exist(shared_http: HttpGoat, path: str) -> None:
    assert send(shared_http, path=path)[0] == 404
    assert send(shared_http, {"Authorization": None}, path=path)[0] == 404


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
def test_other_methods_are_refused(shared_http: HttpGoat, method: str) -> None:
    assert send(shared_http, method=method)[0] == 405


def test_an_own_origin_may_call(shared_http: HttpGoat) -> None:
    parts = urlsplit(shared_http.url)

    status, body = send(shared_http, {"Origin": f"http://{parts.netloc}"})

    assert status == 200
    assert "Read" in body


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@FAULTY
def test_a_body_that_is_not_sound_json_is_answered(
    shared_http: HttpGoat, line: bytes, code: int, request_id: str | None, revision: str
) -> None:
    status, body = send(shared_http, {"MCP-Protocol-Version": revision, "Mcp-Method": "tools/call"}, body=line)

    assert status == 400
    answer = json.loads(body)
    assert (answer["error"]["code"], answer["id"]) == (code, request_id)
    assert send(shared_http)[0] == 200


def test_a_body_without_a_token_is_not_judged(shared_http: HttpGoat) -> None:
    assert send(shared_http, {"Authorization": None}, body=b"{not json") == send(shared_http, {"Authorization": None})
