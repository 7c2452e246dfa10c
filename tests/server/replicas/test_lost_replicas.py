"""Replicas that die, stop, leave, or are of another version or key: what goes on, and what says that it cannot."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

import goat_mcp
from goat_mcp.core.version import __version__
from tests.server.replicas.cluster import (
    ENDPOINT,
    FORMS,
    KEY,
    Cluster,
    RawSession,
    answered,
    call,
    cluster,
    open_session,
    wait_until,
)
from tests.server.replicas.test_owners import YES

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.real_processes,
    pytest.mark.posix_only("signals end the replicas"),
]
NEXT_KEY = "next-key-of-the-replicas-in-tests-012345"


@pytest.fixture
def made(tmp_path: Path) -> Generator[Cluster]:
    with cluster(tmp_path) as made:
        yield made


def in_thread(work: Any, *arguments: Any) -> tuple[threading.Thread, list[Any]]:
    said: list[Any] = []
    thread = threading.Thread(target=lambda: said.append(work(*arguments)))
    thread.start()
    return thread, said


def _broken_off(session: RawSession, url: str, message: Mapping[str, Any]) -> None:
    with pytest.raises(httpx2.TransportError):
        session.post(url, message)


def test_kill_9_of_an_owner_loses_no_session_silently_and_runs_nothing_twice(made: Cluster) -> None:
    toolsets = ["code"]
    a, b = made.start("a", catalog__toolsets=toolsets), made.start("b", catalog__toolsets=toolsets)
    session = open_session(a.url, FORMS)
    marker = made.folder / "workspace" / "after-the-owner"
    command = {"command": f"echo x >> {marker}"}
    permission = call(a.url, "Bash", command)
    by_script = {"script": f"await {ENDPOINT}pay(name='by script')\nawait Bash(command='echo y >> {marker}')\n'end'"}
    for replica in (a, b):
        call(replica.url, f"{ENDPOINT}pay", {"name": "first"})  # it starts the upstream
    script_asks = call(a.url, "run_script", by_script)
    begun = call(a.url, f"{ENDPOINT}pay_then_ask", {"name": "begun"})
    running, said = in_thread(session.call, b.url, f"{ENDPOINT}pay_slowly", {"name": "running", "for_s": 60})
    wait_until(lambda: "running" in made.effects, "the call runs")

    a.kill()
    running.join(30)

    # What runs there is lost, and may have had its effect.
    assert said[0]["error"]["data"] == {"reason": "replica_lost", "effects": "possible"}
    # Its session is gone, by the protocol's word for that, and a new one is at hand.
    assert session.post(b.url, {"id": 5, "method": "ping"}).status_code == 404
    assert open_session(b.url).id.startswith("b.")
    # Of a call that had only asked for permission nothing has happened: the answer starts it here, once.
    assert "result" in call(b.url, "Bash", command, **answered(permission, YES))
    assert "error" in call(b.url, "Bash", command, **answered(permission, YES))
    assert marker.read_text() == "x\n"
    # A script goes on after its question, once; what it did before is not done again.
    scripted = call(b.url, "run_script", by_script, **answered(script_asks, YES))
    assert scripted["result"]["content"] == [{"type": "text", "text": "end"}]
    assert "error" in call(b.url, "run_script", by_script, **answered(script_asks, YES))
    assert marker.read_text() == "x\ny\n"
    # One that had begun is not begun again.
    lost = call(b.url, f"{ENDPOINT}pay_then_ask", {"name": "begun"}, **answered(begun, {"day": "Monday"}))
    assert lost["error"]["data"] == {"reason": "parked_call_lost", "effects": "possible"}
    assert "the replica a, which held this call, has ended" in lost["error"]["message"]
    effects = [name for name in made.effects if "cancelled" not in name]
    assert effects == ["first", "first", "by script", "begun", "running"]


def test_an_owner_that_is_stopped_past_its_lease_is_given_up_and_comes_back(made: Cluster) -> None:
    a, b = made.start("a"), made.start("b")
    session = open_session(a.url, FORMS)
    assert session.post(b.url, {"id": 1, "method": "ping"}).status_code == 200
    begun = call(a.url, f"{ENDPOINT}pay_then_ask", {"name": "begun"})

    assert "result" in begun, begun
    a.signal(signal.SIGSTOP)
    waiting, said = in_thread(session.call, b.url, f"{ENDPOINT}pay", {"name": "while it is stopped"})
    waiting.join(30)
    assert said[0]["error"]["data"] == {"reason": "replica_lost", "effects": "possible"}
    assert made.live() == ["b"]
    assert session.post(b.url, {"id": 5, "method": "ping"}).status_code == 404
    lost = call(b.url, f"{ENDPOINT}pay_then_ask", {"name": "begun"}, **answered(begun, {"day": "Monday"}))
    assert lost["error"]["data"]["reason"] == "parked_call_lost"
    a.signal(signal.SIGCONT)

    wait_until(lambda: made.live() == ["a", "b"], "it is registered again")
    assert open_session(a.url).id.startswith("a.")
    again = open_session(a.url)
    assert "result" in again.call(b.url, f"{ENDPOINT}pay", {"name": "after"})
    # What was given up meanwhile does not happen late.
    woken = call(a.url, f"{ENDPOINT}pay_then_ask", {"name": "begun"}, **answered(begun, {"day": "Monday"}))
    assert woken["error"]["data"]["reason"] == "parked_call_lost"
    assert made.effects == ["begun", "after"]


def test_on_sigterm_a_replica_is_unready_at_once_passes_on_what_is_new_and_finishes_what_runs(made: Cluster) -> None:
    a = made.start("a", replica__leave_delay_s=2)
    b = made.start("b")
    wait_until(lambda: open_session(b.url) and call(b.url, f"{ENDPOINT}pay", {"name": "warm"}), "b serves")
    session = open_session(a.url)
    running, said = in_thread(session.call, a.url, f"{ENDPOINT}pay_slowly", {"name": "running", "for_s": 3})
    wait_until(lambda: "running" in made.effects, "the call runs")

    a.process.terminate()
    wait_until(lambda: a.probe() == (503, "leaving"), "it is unready")
    assert a.probe("/healthz") == (200, "ok")
    new = open_session(a.url)
    plain = call(a.url, f"{ENDPOINT}pay", {"name": "new"})
    running.join(30)

    assert new.id.startswith("b.")
    assert plain["result"]["content"][0]["text"] == "new: paid"
    assert said[0]["result"]["content"][0]["text"] == "running: paid"
    assert a.process.wait(25) == 0
    assert made.live() == ["b"]
    assert new.post(b.url, {"id": 5, "method": "ping"}).status_code == 200


def test_a_call_that_does_not_end_keeps_a_leaving_replica_for_its_time_only(made: Cluster) -> None:
    a = made.start("a", replica__leave_delay_s=0, replica__drain_s=2)
    session = open_session(a.url)
    running, _ = in_thread(
        _broken_off,
        session,
        a.url,
        {
            "id": 1,
            "method": "tools/call",
            "params": {"name": f"{ENDPOINT}pay_slowly", "arguments": {"name": "running", "for_s": 30}},
        },
    )
    wait_until(lambda: "running" in made.effects, "the call runs")

    begun_s = time.monotonic()
    a.process.terminate()
    assert a.process.wait(20) == 0

    assert time.monotonic() - begun_s >= 2
    running.join(30)


def test_without_redis_what_needs_none_goes_on_and_an_empty_one_is_filled_again(made: Cluster) -> None:
    a, b = made.start("a"), made.start("b")
    session = open_session(a.url)
    session.call(b.url, f"{ENDPOINT}pay", {"name": "before"})
    asked = call(a.url, "Bash", {"command": "echo x"})

    made.redis.stop()
    time.sleep(3)  # longer than a lease lasts
    for url in (a.url, b.url):
        assert "result" in session.call(url, f"{ENDPOINT}pay", {"name": "without"})
        assert "result" in call(url, f"{ENDPOINT}pay", {"name": "without"})
    assert [one.probe() for one in (a, b)] == [(200, "ok")] * 2
    refused = call(b.url, "Bash", {"command": "echo x"}, **answered(asked, YES))
    assert "error" in refused or refused["result"]["isError"], refused
    made.redis.start()

    wait_until(lambda: made.live() == ["a", "b"], "both are registered again")
    c = made.start("c")
    fresh = open_session(c.url)
    wait_until(lambda: fresh.post(a.url, {"id": 1, "method": "ping"}).status_code == 200, "a finds c")
    gone = call(b.url, "Bash", {"command": "echo x"}, **answered(asked, YES))
    assert "error" in gone, gone  # nothing is granted that Redis does not know


def test_while_the_key_is_replaced_replicas_of_both_keys_serve_each_other(made: Cluster) -> None:
    a = made.start("a", state__key=KEY, state__previous_key=NEXT_KEY)
    b = made.start("b", state__key=NEXT_KEY, state__previous_key=KEY)

    for one, other in ((a, b), (b, a)):
        session = open_session(one.url)
        assert "result" in session.call(other.url, f"{ENDPOINT}pay", {"name": "rotated"})
        asked = call(one.url, f"{ENDPOINT}pay_then_ask", {"name": "rotated"})
        more = answered(asked, {"day": "Monday"})
        assert "result" in call(other.url, f"{ENDPOINT}pay_then_ask", {"name": "rotated"}, **more)

    c = made.start("c", state__key="a-key-that-nobody-else-has-0123456789-0123")
    strange = open_session(c.url)
    assert strange.post(a.url, {"id": 1, "method": "ping"}).status_code == 404
    assert session.post(c.url, {"id": 1, "method": "ping"}).status_code == 404


def test_two_versions_side_by_side_serve_each_other(made: Cluster, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(Path(goat_mcp.__file__).parent, other / "goat_mcp", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(Path(goat_mcp.__file__).parents[1] / "tests", other / "tests", ignore=shutil.ignore_patterns("*"))
    version = other / "goat_mcp" / "core" / "version.py"
    version.write_text(version.read_text().replace(__version__, "9.9.9"))
    a, b = made.start("a"), made.start("b", package=other)

    entries = made.redis.ask("GET", "{goat-mcp}:replicas:entry:b") + made.redis.ask(
        "GET", "{goat-mcp}:replicas:entry:a"
    )

    assert '"version": "9.9.9"' in entries and f'"version": "{__version__}"' in entries
    for one, another in ((a, b), (b, a)):
        session = open_session(one.url)
        assert "result" in session.call(another.url, f"{ENDPOINT}pay", {"name": "mixed"})
        asked = call(one.url, f"{ENDPOINT}pay_then_ask", {"name": "mixed"})
        more = answered(asked, {"day": "Monday"})
        assert "result" in call(another.url, f"{ENDPOINT}pay_then_ask", {"name": "mixed"}, **more)


def test_a_replica_whose_redis_is_not_there_yet_is_not_ready_until_it_is(made: Cluster) -> None:
    made.redis.stop()
    a = made.start("a")
    assert a.probe() == (503, "unregistered")
    assert a.probe("/healthz")[0] == 200

    made.redis.start()

    wait_until(lambda: a.probe() == (200, "ok"), "it is ready")
    assert httpx2.get(a.url).status_code == 401
