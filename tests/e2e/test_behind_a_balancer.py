"""Clients that others wrote, of both eras, through a real balancer to three replicas."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.deploy.balancers import BALANCERS
from tests.deploy.team import Team, team
from tests.e2e.collector import collecting
from tests.e2e.goat import connected
from tests.e2e.node_side import Node
from tests.e2e.test_asking import ENGINE, accepts, asking
from tests.e2e.test_clients import READ_TEXT
from tests.e2e.test_metrics import samples
from tests.e2e.visits import FORMS, Kind, SeekNode, call, every_kind, visit
from tests.e2e.wire import text_of

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]
VISITS = 4


@pytest.fixture(scope="module", params=BALANCERS, ids=lambda one: one.name)
def shared_team(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Team]:
    folder = tmp_path_factory.mktemp("team")
    with team(folder, request.param, "--set", "metrics.listen=127.0.0.1:0") as running:
        yield running


@every_kind
async def test_each_client_works_through_the_balancer(shared_team: Team, seek_node: SeekNode, kind: Kind) -> None:
    steps = [
        call("Read", file_path=str(shared_team.workspace / "src/greeting.py")),
        call("NoSuchTool"),
        call("Bash", command="echo out; echo err >&2"),
    ]

    for _ in range(VISITS):  # each time at another replica
        seen = await visit(kind, shared_team.behind_balancer, steps, {}, node=seek_node)

        read, unknown, ran = seen.texts
        assert (read, ran) == (READ_TEXT, "out\nerr")
        assert "tool not found: NoSuchTool" in unknown


@every_kind
async def test_an_answer_reaches_its_call_at_whatever_replica_it_arrives(
    shared_team: Team, seek_node: SeekNode, kind: Kind
) -> None:
    answers = {FORMS: [accepts(q1="SQLite")] * VISITS}

    seen = await visit(kind, shared_team.behind_balancer, [asking(ENGINE)] * VISITS, answers, node=seek_node)

    assert len(seen.forms) == VISITS
    assert ["SQLite" in text for text in seen.texts] == [True] * VISITS, seen.texts


def test_the_inspector_works_through_the_balancer(shared_team: Team, node: Node) -> None:
    words = ("--method", "tools/call", "--tool-name", "Bash", "--tool-arg", "command=echo it works")

    assert text_of(node.inspect(shared_team.behind_balancer, *words)) == "it works"


async def test_all_replicas_take_part_and_a_session_stays_at_its_own(shared_team: Team) -> None:
    for _ in range(2 * len(shared_team.replicas)):
        for mode in ("legacy", "2026-07-28"):
            async with connected(shared_team.behind_balancer, mode) as client:
                for _ in range(3):
                    assert not (await client.call_tool("Glob", {"pattern": "*.md"})).is_error

    counts: list[Any] = []
    for number in range(len(shared_team.replicas)):
        found = await samples(shared_team.metrics_url(number))
        counts.append(found.get(("goat_mcp_call_duration_seconds_count", (("tool", "Glob"), ("upstream", ""))), 0))
    assert all(counts), counts


async def test_a_request_that_another_replica_answers_is_in_one_trace(tmp_path: Path) -> None:
    """A session of the older era, asked for at a replica that is not its owner."""
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    params = {"name": "Glob", "arguments": {"pattern": "*.md"}}
    with ExitStack() as stack:
        collector = stack.enter_context(collecting())
        traced = ("--set", f"tracing.endpoint={collector.url}")
        running = stack.enter_context(team(tmp_path, BALANCERS[0], *traced, replicas=2))
        owner, other = running.replicas
        headers = {**owner.headers, "accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
            opened = await client.post(owner.url, json=request("initialize", about))
            client.headers |= {
                "mcp-session-id": opened.headers["mcp-session-id"],
                "mcp-protocol-version": "2025-11-25",
            }
            await client.post(owner.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
            answered = await client.post(other.url, json=request("tools/call", params))

        assert "notes.md" in answered.text
        left, came, asked, ran = collector.wait_for("hop to goat-1", "hop from goat-2", "tools/call Glob", "call Glob")

    assert {span.trace_id for span in (left, came, asked, ran)} == {left.trace_id}
    assert [came.parent_id, ran.parent_id] == [left.span_id, asked.span_id]


def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
