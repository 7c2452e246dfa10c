"""Tasks over HTTP (SEP-2663): each is its principal's only, and the routing header says what the body says. # ERA-7"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from goat_mcp.server.caller_identity import TASKS_EXTENSION
from tests.server.http_thread import BROAD, NARROW, OPERATORS, RawServer, raw_server

UNKNOWN = {"code": -32602, "message": "no such task, or it has expired"}
METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tasks/get", {}),
    ("tasks/update", {"inputResponses": {}}),
    ("tasks/cancel", {}),
)


def ask(
    server: RawServer, token: str, method: str, params: Mapping[str, Any], **headers: str | None
) -> tuple[int, dict[str, Any]]:
    """HTTP status and JSON-RPC answer."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS_EXTENSION: {}}},
    }
    sent = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        "Mcp-Name": params.get("taskId", params.get("name")),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    answer = httpx2.post(
        f"http://{server.host}/mcp",
        json={"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}},
        headers={name: value for name, value in sent.items() if value is not None},
        timeout=30,
    )
    return answer.status_code, answer.json()


def start(server: RawServer, token: str) -> str:
    arguments = {"command": "sleep 60", "run_in_background": True}
    _, answer = ask(server, token, "tools/call", {"name": "Bash", "arguments": arguments})
    return answer["result"]["taskId"]


def test_R_HTTP_3b_a_foreign_task_is_as_unknown_as_a_made_up_one(tmp_path: Path) -> None:
    with raw_server(tmp_path) as server:
        mine, made_up = start(server, NARROW), "a" * 32
        foreign = [
            ask(server, token, method, {"taskId": task_id, **more})
            for token, task_id in ((BROAD, mine), (OPERATORS, mine), (BROAD, made_up))
            for method, more in METHODS
        ]
        status, found = ask(server, NARROW, "tasks/get", {"taskId": mine})
        ask(server, NARROW, "tasks/cancel", {"taskId": mine})

    assert {(code, *answer["error"].values()) for code, answer in foreign} == {(400, *UNKNOWN.values())}
    assert (status, found["result"]["status"]) == (200, "working"), "nobody else has ended it"


@pytest.mark.parametrize("name", ["b" * 32, None], ids=["another", "none"])
def test_a_routing_header_that_is_not_the_bodys_task_is_refused(tmp_path: Path, name: str | None) -> None:
    with raw_server(tmp_path) as server:
        task_id = start(server, NARROW)
        refused = [ask(server, NARROW, method, {"taskId": task_id, **more}, Mcp_Name=name) for method, more in METHODS]
        _, found = ask(server, NARROW, "tasks/get", {"taskId": task_id})
        ask(server, NARROW, "tasks/cancel", {"taskId": task_id})

    assert [(status, answer["error"]["code"]) for status, answer in refused] == [(400, -32020)] * 3
    assert found["result"]["status"] == "working"


def test_calls_on_the_short_way_become_tasks_too(tmp_path: Path) -> None:
    """The first call of a client teaches the way that later ones take (design 0019)."""
    with raw_server(tmp_path) as server:
        tasks = [start(server, NARROW) for _ in range(3)]
        states = [ask(server, NARROW, "tasks/get", {"taskId": one})[1]["result"]["status"] for one in tasks]
        for one in tasks:
            ask(server, NARROW, "tasks/cancel", {"taskId": one})

    assert states == ["working"] * 3 and len(set(tasks)) == 3
