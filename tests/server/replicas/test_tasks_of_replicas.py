"""Tasks of clients that know them (SEP-2663), on several replicas: any of them answers about any task. # ERA-7"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server.replicas.cluster import ENDPOINT, WAIT_S, Cluster, cluster, headers, last_message, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.real_processes, pytest.mark.posix_only("signals end the replicas")]
KNOWS_TASKS: Mapping[str, Any] = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.fixture
def made(tmp_path: Path) -> Generator[Cluster]:
    with cluster(tmp_path) as made:
        yield made


def ask(url: str, method: str, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": KNOWS_TASKS,
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    sent = headers(MCP_Protocol_Version="2026-07-28", Mcp_Method=method, Mcp_Name=name)
    return last_message(httpx2.post(url, json=body, headers=sent, timeout=WAIT_S))


def started(url: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """The id of the task that the call has become."""
    answer = ask(url, "tools/call", tool, {"name": tool, "arguments": arguments})
    assert answer["result"]["resultType"] == "task", answer
    return answer["result"]["taskId"]


def state(url: str, task_id: str) -> dict[str, Any]:
    answer = ask(url, "tasks/get", task_id, {"taskId": task_id})
    assert "result" in answer, answer
    return answer["result"]


def until(url: str, task_id: str, *statuses: str) -> dict[str, Any]:
    """A replica that has just gone may be said to be unreachable first."""
    until_s = time.monotonic() + WAIT_S
    while True:
        answer = ask(url, "tasks/get", task_id, {"taskId": task_id})
        if answer.get("result", {}).get("status") in statuses:
            return answer["result"]
        assert time.monotonic() < until_s, answer
        time.sleep(0.05)


def test_a_task_of_one_replica_is_read_answered_and_cancelled_at_another(made: Cluster) -> None:
    a, b = (made.start(name, tasks__after_s=0.2) for name in ("a", "b"))
    slow = started(a.url, f"{ENDPOINT}pay_slowly", {"name": "slow", "for_s": 3})
    stopped = started(a.url, f"{ENDPOINT}pay_slowly", {"name": "stopped", "for_s": 60})
    wait_until(lambda: "stopped" in made.effects, "it runs")

    working = state(b.url, slow)
    cancelled = ask(b.url, "tasks/cancel", stopped, {"taskId": stopped})
    ended = until(b.url, stopped, "cancelled")
    done = until(b.url, slow, "completed")

    assert (working["status"], working["taskId"]) == ("working", slow) and slow.endswith(".a")
    assert cancelled["result"]["resultType"] == "complete" and ended["status"] == "cancelled"
    assert done["result"]["content"] == [{"type": "text", "text": "slow: paid"}]
    wait_until(lambda: "stopped, cancelled" in made.effects, "the cancel reached the upstream")


def test_of_a_replica_that_died_another_has_what_ended_and_says_what_is_lost(made: Cluster) -> None:
    a, b = (made.start(name, tasks__after_s=0.2) for name in ("a", "b"))
    kept = started(a.url, f"{ENDPOINT}pay_slowly", {"name": "kept", "for_s": 1})
    lost = started(a.url, f"{ENDPOINT}pay_slowly", {"name": "lost", "for_s": 60})
    until(a.url, kept, "completed")
    time.sleep(0.5)  # its end is recorded right after it is known

    a.kill()
    wait_until(lambda: made.live() == ["b"], "its lease is over")
    found, gone = state(b.url, kept), until(b.url, lost, "failed")

    assert found["status"] == "completed"
    assert found["result"]["content"] == [{"type": "text", "text": "kept: paid"}]
    assert gone["error"]["data"] == {"reason": "orphaned", "effects": "possible"}
    assert "the replica a, which ran it, has ended" in gone["error"]["message"]
    assert sorted(one for one in made.effects if "cancelled" not in one) == ["kept", "lost"]
