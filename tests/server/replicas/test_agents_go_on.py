"""An agent whose replica dies goes on at another one, once, after its last recorded turn."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.scripted_backend import BACKEND_KEY, MODEL, Calls, Held, Says, ScriptedBackend, ToolCall
from tests.server.replicas.cluster import ENDPOINT, Cluster, Running, call, cluster, wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.real_processes,
    pytest.mark.posix_only("signals end the replicas"),
]
PAY = f"{ENDPOINT}pay"
PAY_SLOWLY = f"{ENDPOINT}pay_slowly"


@pytest.fixture
def made(tmp_path: Path) -> Generator[Cluster]:
    with cluster(tmp_path) as made:
        yield made


@pytest.fixture
def backend() -> Generator[ScriptedBackend]:
    with ScriptedBackend().running() as backend:
        yield backend


def start(made: Cluster, name: str, backend: ScriptedBackend) -> Running:
    allowed = ["mcp__effects", "Agent", "TaskStop"]
    return made.start(
        name,
        agent__base_url=backend.url,
        agent__key=BACKEND_KEY,
        agent__model=MODEL,
        permissions__allow=allowed,
    )


def pays(tool: str, /, **arguments: Any) -> Calls:
    return Calls((ToolCall(tool, arguments),))


def text(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


def begin(at: Running, **more: Any) -> str:
    """Its id."""
    arguments = {"description": "a task", "prompt": "Begin.", "run_in_background": True, **more}
    return text(call(at.url, "Agent", arguments)).splitlines()[0].removeprefix("Task started: ")


def begin_and_pay(at: Running, backend: ScriptedBackend, answer: Says | Calls) -> tuple[str, Held]:
    """An agent that has made one call and waits for this answer of its model; asked once more, that says `Whole.`"""
    held = Held(answer)
    backend.script(pays(PAY, name="first"), held)
    agent = begin(at)
    assert held.arrived.wait(60)
    backend.forget()
    backend.script(Says("Whole."))
    return agent, held


def output(at: Running, agent: str, *, block: bool = True) -> str:
    return text(call(at.url, "TaskOutput", {"task_id": agent, "block": block, "timeout": 30000}))


def roles(backend: ScriptedBackend) -> list[str]:
    return [str(message.get("content")) for message in backend.asked[-1].messages if message["role"] != "assistant"]


def test_an_agent_is_resumable_after_its_last_turn_and_repeats_nothing(made: Cluster, backend: ScriptedBackend) -> None:
    a, b = start(made, "a", backend), start(made, "b", backend)
    agent, held = begin_and_pay(a, backend, Says("never heard"))

    a.kill()
    held.release.set()

    assert "completed" in (said := output(b, agent)) and "Whole." in said
    assert made.effects == ["first"]
    assert "Begin." in roles(backend)[1]
    assert "another one goes on with you" in roles(backend)[-1]
    c = start(made, "c", backend)
    assert "Whole." in output(c, agent)


def test_a_call_that_was_begun_is_not_made_again_and_the_model_knows(made: Cluster, backend: ScriptedBackend) -> None:
    a, b = start(made, "a", backend), start(made, "b", backend)
    backend.script(pays(PAY_SLOWLY, name="begun", for_s=60))
    agent = begin(a)
    wait_until(lambda: "begun" in made.effects, "the call runs")
    backend.forget()
    backend.script(Says("I have looked."))

    a.kill()

    assert "I have looked." in output(b, agent)
    assert [name for name in made.effects if "cancelled" not in name] == ["begun"]
    assert any("look at what came of it before you repeat it" in said for said in roles(backend))


def test_one_that_had_not_begun_starts_at_another_replica(made: Cluster, backend: ScriptedBackend) -> None:
    a, b = start(made, "a", backend), start(made, "b", backend)
    held = Held(Says("never heard"))
    backend.script(held)
    agent = begin(a)
    assert held.arrived.wait(60)
    backend.forget()
    backend.script(Says("Done elsewhere."))

    a.kill()
    held.release.set()

    assert "Done elsewhere." in output(b, agent)
    assert roles(backend)[-1] == "Begin."


def test_a_replica_that_stood_still_does_not_go_on_with_what_another_one_has(
    made: Cluster, backend: ScriptedBackend
) -> None:
    a, b = start(made, "a", backend), start(made, "b", backend)
    agent, held = begin_and_pay(a, backend, pays(PAY, name="late"))

    a.signal(signal.SIGSTOP)
    wait_until(lambda: made.live() == ["b"], "it is given up")
    assert "Whole." in output(b, agent)
    held.release.set()
    a.signal(signal.SIGCONT)
    wait_until(lambda: made.live() == ["a", "b"], "it is registered again")
    time.sleep(2)

    assert made.effects == ["first"]
    assert "Whole." in output(a, agent)


def test_a_replica_that_leaves_hands_its_agents_over(made: Cluster, backend: ScriptedBackend) -> None:
    a, b = start(made, "a", backend), start(made, "b", backend)
    agent, held = begin_and_pay(a, backend, Says("never heard"))

    a.process.terminate()
    assert a.process.wait(30) == 0
    held.release.set()

    assert "Whole." in output(b, agent)
    assert made.effects == ["first"]


def test_one_that_was_stopped_by_its_user_is_not_taken_over(made: Cluster, backend: ScriptedBackend) -> None:
    a, b = start(made, "a", backend), start(made, "b", backend)
    held = Held(Says("never heard"))
    backend.script(held)
    agent = begin(a)
    assert held.arrived.wait(60)

    call(b.url, "TaskStop", {"task_id": agent})
    held.release.set()
    a.kill()
    wait_until(lambda: made.live() == ["b"], "it is given up")
    time.sleep(3)

    assert "stopped" in output(b, agent)
    assert len(backend.asked) == 1


def test_after_redis_was_emptied_the_agent_ends_where_it_runs(made: Cluster, backend: ScriptedBackend) -> None:
    a, b = start(made, "a", backend), start(made, "b", backend)
    held = Held(pays(PAY, name="after"))
    backend.script(held, Says("Whole."))
    agent = begin(a)
    assert held.arrived.wait(60)

    made.redis.stop()
    time.sleep(3)
    made.redis.start()
    wait_until(lambda: made.live() == ["a", "b"], "both are registered again")
    held.release.set()

    assert "Whole." in output(a, agent)
    assert made.effects == ["after"]
    assert "Whole." in output(b, agent)


def test_an_agent_that_runs_at_one_replica_is_not_resumed_at_another_until_it_has_ended(
    made: Cluster, backend: ScriptedBackend
) -> None:
    a, b = start(made, "a", backend), start(made, "b", backend)
    agent, held = begin_and_pay(a, backend, Says("First."))
    go_on = {"description": "go on", "prompt": "Go on.", "resume": agent}

    refused = text(call(b.url, "Agent", go_on))
    held.release.set()
    assert "First." in output(a, agent)
    resumed = text(call(b.url, "Agent", go_on))

    assert "[E_BUSY]" in refused
    assert "Whole." in resumed
    assert made.effects == ["first"]


def test_an_agent_that_a_call_waits_for_ends_with_its_replica(made: Cluster, backend: ScriptedBackend) -> None:
    a, b = start(made, "a", backend), start(made, "b", backend)
    held = Held(Says("never heard"))
    backend.script(held)
    waiting = threading.Thread(target=lambda: suppressed(begin, a, run_in_background=False))
    waiting.start()
    assert held.arrived.wait(60)

    a.kill()
    waiting.join(60)
    held.release.set()
    wait_until(lambda: made.live() == ["b"], "it is given up")
    time.sleep(3)

    assert b.probe() == (200, "ok")
    assert len(backend.asked) == 1


def suppressed(work: Any, *arguments: Any, **more: Any) -> None:
    with suppress(httpx2.TransportError):
        work(*arguments, **more)
