"""Two replicas: what one of them owns is answered by it, whichever gets the request."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

import httpx2
import pytest

from goat_mcp.calls.permissions.approval import ALLOW_ONCE
from goat_mcp.web.hops.client import HOP_HEADER
from tests.server.replicas.cluster import (
    ENDPOINT,
    FORMS,
    Cluster,
    RawSession,
    Running,
    answered,
    call,
    cluster,
    commands_seen,
    headers,
    open_session,
    wait_until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.posix_only("signals end the replicas")]
YES = {"decision": ALLOW_ONCE}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Cluster, Running, Running]]:
    with cluster(tmp_path_factory.mktemp("replicas")) as made:
        yield made, made.start("a", replica__lease_s=60), made.start("b", replica__lease_s=60)


def test_a_session_of_one_replica_is_served_through_the_other(two: tuple[Cluster, Running, Running]) -> None:
    _, a, b = two
    session = open_session(a.url)

    assert session.id.startswith("a.")
    through = session.post(b.url, {"id": 2, "method": "ping"})
    assert through.status_code == 200
    assert through.headers["mcp-session-id"] == session.id
    told = session.call(b.url, f"{ENDPOINT}pay", {"name": "through b"})
    assert told["result"]["content"][0]["text"] == "through b: paid"
    assert httpx2.delete(b.url, headers=headers(Mcp_Session_Id=session.id)).status_code == 200
    assert session.post(a.url, {"id": 3, "method": "ping"}).status_code == 404


def test_a_session_of_nobody_is_404_and_the_client_starts_again(two: tuple[Cluster, Running, Running]) -> None:
    _, a, b = two
    known = open_session(a.url).id.partition(".")[2]

    for made_up in (f"c.{known}", f"b.{known}", known, "a.", "a", ".", f"a.b.{known}"):
        assert RawSession(made_up).post(b.url, {"id": 1, "method": "ping"}).status_code == 404, made_up


def test_a_question_comes_out_of_a_stream_that_goes_through_another_replica_at_once(
    two: tuple[Cluster, Running, Running],
) -> None:
    _, a, b = two
    session = open_session(a.url, FORMS)
    params = {"name": f"{ENDPOINT}pay_then_ask", "arguments": {"name": "asked"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    sent = headers(MCP_Protocol_Version="2025-11-25", Mcp_Session_Id=session.id)
    frames: list[str] = []

    with httpx2.stream("POST", b.url, json=body, headers=sent, timeout=60) as stream:
        for line in stream.iter_lines():
            if not line.startswith("data: ") or not line.removeprefix("data: "):
                continue
            frames.append(line)
            if "elicitation/create" in line:
                # The answer to the question comes to the other one, too.
                question = httpx2.Response(200, text=line.removeprefix("data: ")).json()
                told = {"id": question["id"], "result": {"action": "accept", "content": {"day": "Monday"}}}
                assert session.post(b.url, told).status_code == 202

    assert "asked: accept" in frames[-1]


def test_a_client_that_leaves_cancels_its_call_behind_another_replica(two: tuple[Cluster, Running, Running]) -> None:
    made, a, b = two
    session = open_session(a.url)
    params = {"name": f"{ENDPOINT}pay_slowly", "arguments": {"name": "left", "for_s": 60}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    sent = headers(MCP_Protocol_Version="2025-11-25", Mcp_Session_Id=session.id)

    with httpx2.stream("POST", b.url, json=body, headers=sent, timeout=60):
        wait_until(lambda: "left" in made.effects, "the call runs")

    wait_until(lambda: "left, cancelled" in made.effects, "the call is cancelled")


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_suspended_call_goes_on_where_it_is_whoever_gets_the_answer(
    two: tuple[Cluster, Running, Running], first: str
) -> None:
    made, a, b = two
    one, other = (a, b) if first == "a" else (b, a)
    name = f"suspended at {first}"

    asked = call(one.url, f"{ENDPOINT}pay_then_ask", {"name": name})
    more = answered(asked, {"day": "Monday"})
    done = call(other.url, f"{ENDPOINT}pay_then_ask", {"name": name}, **more)
    again = call(other.url, f"{ENDPOINT}pay_then_ask", {"name": name}, **more)

    assert done["result"]["content"][0]["text"] == f"{name}: accept"
    assert again["error"]["data"] == {"reason": "parked_call_lost", "effects": "possible"}
    assert made.effects.count(name) == 1


def test_a_state_of_a_suspended_call_counts_for_its_own_call_only(two: tuple[Cluster, Running, Running]) -> None:
    made, a, b = two
    asked = call(a.url, f"{ENDPOINT}pay_then_ask", {"name": "mine"})

    other = call(b.url, f"{ENDPOINT}pay_then_ask", {"name": "other"}, **answered(asked, {"day": "Monday"}))

    assert other["error"]["data"] == {"reason": "invalid_request_state"}
    assert "other" not in made.effects


def test_a_permission_that_was_asked_for_by_one_replica_counts_once_at_any(
    two: tuple[Cluster, Running, Running],
) -> None:
    made, a, b = two
    marker = made.folder / "workspace" / "made-once"
    asked = call(a.url, "Bash", {"command": f"echo x >> {marker}"})
    more = answered(asked, YES)
    said: list[dict[str, Any]] = []

    def answer(url: str) -> None:
        said.append(call(url, "Bash", {"command": f"echo x >> {marker}"}, **more))

    threads = [threading.Thread(target=answer, args=(url,)) for url in (a.url, b.url) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sum("result" in one for one in said) == 1, said
    assert marker.read_text() == "x\n"


def test_plain_calls_ask_redis_nothing(two: tuple[Cluster, Running, Running]) -> None:
    made, a, b = two
    session = open_session(a.url)
    for url in (a.url, b.url):  # each knows the other now
        session.call(url, f"{ENDPOINT}pay", {"name": "warm"})
        call(url, f"{ENDPOINT}pay", {"name": "warm"})

    with commands_seen(made.redis) as seen:
        for number in range(20):
            assert "result" in session.call(a.url, f"{ENDPOINT}pay", {"name": "plain"}, number)
            assert "result" in session.call(b.url, f"{ENDPOINT}pay", {"name": "plain"}, 100 + number)
            assert "result" in call(a.url, f"{ENDPOINT}pay", {"name": "plain"})

    # What is sent once in a while, whatever is called: the leases, and the heads of the audit.
    assert [line for line in seen if "replicas:" not in line and "audit:anchors:" not in line] == []
    assert len(seen) <= 10
    assert made.effects.count("plain") == 60


def test_requests_that_no_replica_has_signed_are_refused(two: tuple[Cluster, Running, Running]) -> None:
    _, a, _ = two
    session = open_session(a.url)
    hop = a.url.replace("/mcp", "/replica/mcp")
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    for sealed in (None, "", "e30=.00", "x"):
        more = {} if sealed is None else {HOP_HEADER: sealed}
        answer = httpx2.post(hop, json=ping, headers={**headers(Mcp_Session_Id=session.id), **more})
        assert (answer.status_code, answer.text) == (403, "only replicas of this server may ask here\n")

    wait_until(lambda: "should come from a replica was refused" in "".join(a.said), "it is in the log")


def test_probes_need_no_token_and_no_host(two: tuple[Cluster, Running, Running]) -> None:
    _, a, _ = two

    for path in ("/healthz", "/readyz"):
        answer = httpx2.get(a.url.replace("/mcp", path), headers={"Host": "10.1.2.3"})
        assert (answer.status_code, answer.text) == (200, "ok\n")
        assert httpx2.post(a.url.replace("/mcp", path)).status_code == 405


def test_a_second_server_with_the_name_of_a_live_one_does_not_start(two: tuple[Cluster, Running, Running]) -> None:
    made, _, _ = two

    with pytest.raises(AssertionError, match="another live replica has the name 'a'"):
        made.start("a", replica__lease_s=1)
