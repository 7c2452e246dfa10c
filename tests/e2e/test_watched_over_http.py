"""Watching an upstream's resource with HTTP on both sides of goat-mcp, frame by frame for 2026-07-28."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import Launch, connected, http_goat
from tests.free_port import free_port
from tests.server.handlers.test_resources import Told, subscribe
from tests.upstreams.fleet import serving_at, warm

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
WAIT_S = 60
LISTEN_ID = "my-stream"
RESERVED = "io.modelcontextprotocol/"
LISTED = [{"name": "touch", "inputSchema": {"type": "object"}}]


def listening(*uris: str) -> dict[str, Any]:
    meta = {
        f"{RESERVED}protocolVersion": "2026-07-28",
        f"{RESERVED}clientInfo": {"name": "raw", "version": "1"},
        f"{RESERVED}clientCapabilities": {},
    }
    asked = {"resourcesListChanged": True, "resourceSubscriptions": list(uris)}
    params = {"notifications": asked, "_meta": meta}
    return {"jsonrpc": "2.0", "id": LISTEN_ID, "method": "subscriptions/listen", "params": params}


async def frames_of(answer: httpx2.Response) -> AsyncGenerator[dict[str, Any]]:
    async for line in answer.aiter_lines():
        if line.startswith("data:") and line[5:].strip():
            yield json.loads(line[5:])


# CHG-3, CHG-4
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_frames_of_a_change_stream_name_it_and_what_it_tells_of(tmp_path: Path, era: str) -> None:
    port = free_port()
    entry = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
    if era == "handshake":
        warm(tmp_path, {"a": entry}, {"a": LISTED}, "2025-11-25")
    file = upstream_file(tmp_path / "goat.json", a=entry)
    launch = Launch(tmp_path, fill(tmp_path / "ws"), ("--upstreams", str(file), *UNASKED))
    told = Told()
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "subscriptions/listen",
        "Accept": "application/json, text/event-stream",
    }
    only = ("new_only",) if era == "stateless" else ()
    with serving_at(port, "shelf.py", "http", port, "a", *only), http_goat(launch) as goat, anyio.fail_after(WAIT_S):
        async with (
            connected(goat, "legacy", message_handler=told) as old,
            httpx2.AsyncClient(headers={**goat.headers, **headers}, timeout=WAIT_S) as web,
        ):
            await old.list_resources()
            await subscribe(old, "a://one")
            wanted = listening("a://one", "a://two", "z://none", "goat://todos")
            async with web.stream("POST", goat.url, json=wanted) as answer:
                frames = frames_of(answer)
                acknowledged = await anext(frames)
                await old.call_tool("mcp__a__touch", {"uri": "a://one"})
                updated = await anext(frames)
            await told.wait_for("a://one")

    meta = {f"{RESERVED}subscriptionId": LISTEN_ID}
    assert acknowledged["params"] == {
        "notifications": {"resourcesListChanged": True, "resourceSubscriptions": ["a://one", "goat://todos"]},
        "_meta": meta,
    }
    assert (updated["method"], updated["params"]) == (
        "notifications/resources/updated",
        {"uri": "a://one", "_meta": meta},
    )
