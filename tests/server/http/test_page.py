"""The page beside `/mcp`: only below `/ui`, and loaded when somebody opens it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from goat_mcp.server.http.guard import HttpGuard

pytestmark = pytest.mark.anyio

HOST = "127.0.0.1:8765"


async def answered_by(path: str, **changes: Any) -> str:
    """`mcp`, `page`, or the status with which the guard refuses it."""

    def app(name: str) -> Any:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": name, "headers": []})

        return answer

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    headers = [(b"host", HOST.encode()), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, **changes}
    await HttpGuard(app("mcp"), frozenset({HOST}), page=app("page"))(scope, receive, send)
    return str(sent[0]["status"])


@pytest.mark.parametrize("path", ["/ui", "/ui/", "/ui/calls", "/ui/login"])
async def test_the_page_is_at_and_below_ui(path: str) -> None:
    assert await answered_by(path) == "page"


@pytest.mark.parametrize("path", ["/uix", "/UI", "//ui", "/mcp/ui", "/ui.html", "/", "/x/../ui"])
async def test_no_other_path_is_the_page(path: str) -> None:
    assert await answered_by(path) == "404"


async def test_mcp_is_what_it_was_beside_the_page() -> None:
    assert await answered_by("/mcp") == "mcp"
    assert await answered_by("/mcp", method="PUT") == "405"
    assert await answered_by("/mcp", headers=[(b"host", b"evil.example")]) == "421"


def test_a_server_whose_page_nobody_opens_loads_nothing_of_it() -> None:
    loaded = "sorted(name for name in sys.modules if name == 'jinja2' or name.startswith('goat_mcp.server.ui'))"
    code = f"import sys, goat_mcp.server.run, goat_mcp.server.http.server; print({loaded})"

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert shown.stdout.strip() == "[]"
