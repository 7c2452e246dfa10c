"""What an HTTP request meets before any session exists."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from goat_mcp.server.http.guard import HttpGuard

pytestmark = pytest.mark.anyio

HOST = "127.0.0.1:8765"


def request(**changes: Any) -> Scope:
    headers = {"host": HOST, "content-type": "application/json", **changes.pop("headers", {})}
    return {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value is not None],
        **changes,
    }


async def _passes(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def status_of(scope: Scope, guard: HttpGuard | None = None) -> int:
    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    guard = guard or HttpGuard(_passes, frozenset({HOST, "localhost:8765"}))
    await guard(scope, receive, send)
    return sent[0]["status"]


async def test_an_ordinary_request_passes() -> None:
    assert await status_of(request()) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1:9999", "127.0.0.1", "localhost:8765.evil.example", "127.0.0.1:8765@evil", ""]
)
async def test_a_host_that_is_not_exactly_ours_is_refused(host: str) -> None:
    assert await status_of(request(headers={"host": host})) == 421


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "mcp.example.com"}, 200),
        ({"host": "MCP.example.com", "origin": "https://mcp.example.com"}, 200),
        ({"host": "mcp.example.com", "origin": "https://other.example.com"}, 403),
        ({"host": "mcp.example.com:8765"}, 421),
        ({"host": HOST, "origin": f"https://{HOST}"}, 403),
    ],
)
async def test_a_load_balancers_name_is_served_exactly_as_the_settings_have_it(
    headers: dict[str, str], status: int
) -> None:
    guard = HttpGuard(_passes, frozenset({HOST}), public_hosts=frozenset({"mcp.example.com"}))

    assert await status_of(request(headers=headers), guard) == status


async def test_a_request_without_a_host_or_with_two_is_refused() -> None:
    assert await status_of(request(headers={"host": None})) == 421
    doubled = request()
    doubled["headers"].append((b"host", b"evil.example"))
    assert await status_of(doubled) == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8765", f"http://{HOST}.evil"])
async def test_a_foreign_origin_is_refused(origin: str) -> None:
    assert await status_of(request(headers={"origin": origin})) == 403


async def test_our_own_origin_passes() -> None:
    assert await status_of(request(headers={"origin": f"http://{HOST}"})) == 200


CARDS = (
    *("/.well-known/mcp.json", "/.well-known/mcp", "/.well-known/mcp/server-card.json", "/.well-known/mcp-server-card"),
    *("/.well-known/agent-skills/index.json", "/.well-known/openid-configuration", "/mcp/server-card", "/server.json"),
)
"""Where drafts and other programs look for a server's card, and more of the kind."""


@pytest.mark.parametrize("path", ["/", "/mcp/", "/mcp/x", "/.well-known/oauth-protected-resource", "//mcp", *CARDS])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_every_other_path_is_not_found(path: str, method: str) -> None:
    """Nothing about this server is published to who has no business with it."""
    assert await status_of(request(path=path, method=method)) == 404


async def test_a_preflight_gets_no_grant() -> None:
    assert await status_of(request(method="OPTIONS", headers={"origin": f"http://{HOST}"})) == 405


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", None, "application/jsonx"])
async def test_only_json_is_taken(content_type: str | None) -> None:
    assert await status_of(request(headers={"content-type": content_type})) == 415


async def test_json_with_a_charset_is_json() -> None:
    assert await status_of(request(headers={"content-type": "application/json; charset=utf-8"})) == 200
