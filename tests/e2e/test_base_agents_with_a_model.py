"""`agents__spawn` and `agents__request`, called by a real client, with agents that a model runs."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import anyio
import pytest

from tests.e2e.conftest import UNASKED
from tests.e2e.goat import Launch, connected
from tests.e2e.litellm_proxy import LiteLlm, in_one_worker
from tests.e2e.scripted_backend import BACKEND_KEY, MODEL, Asked, Says, ScriptedBackend, calls
from tests.e2e.test_agents_through_litellm import with_endpoint
from tests.e2e.test_clients_model import says as thought
from tests.e2e.visits import MODEL as SAMPLING
from tests.e2e.visits import PYTHON, Kind, SeekNode, call, visit

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.full]

BOUND_S = 120.0
ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


def base(launch: Launch) -> Launch:
    return replace(launch, options=(*launch.options, "--toolset", "base"))


@pytest.fixture
def backend() -> Generator[ScriptedBackend]:
    with ScriptedBackend().running() as model:
        yield model


def said(result: Any) -> Any:
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


async def asked_of_a_scout(launch: Launch, era: str) -> list[Any]:
    """What a client hears of an agent that it starts with a task, asks something, and looks at."""
    with anyio.fail_after(BOUND_S):
        async with connected(base(launch), era) as client:
            spawned = said(
                await client.call_tool(
                    "agents__spawn", {"type": "explorer", "name": "scout", "input": "When does the goat eat?"}
                )
            )
            correlation_id = spawned.pop("correlationId")
            first = said(
                await client.call_tool("agents__request", {"target": "scout", "correlationId": correlation_id})
            )
            second = said(await client.call_tool("agents__request", {"target": "scout", "message": "And what?"}))
            (live,) = said(await client.call_tool("agents__list", {}))["agents"]
            stopped: Any = await client.call_tool("TaskStop", {"task_id": spawned.pop("taskId")})
            gone: Any = await client.call_tool("agents__request", {"target": "scout", "message": "Still there?"})
    return [spawned, first, second, live["name"], live["takesRequests"], stopped.is_error, gone.content[0].text[-14:]]


HEARD = [{"name": "scout", "type": "explorer"}, {"answer": "At noon."}, {"answer": "Hay."}, "scout", True, False]
GONE = "[E_DELIVERY]"


def script(backend: ScriptedBackend, launch: Launch) -> None:
    notes = str(launch.workspace / "notes.md")
    backend.script(calls("Read", file_path=notes), Says("At noon."), Says("Hay."))


def told(asked: Asked) -> list[str]:
    return [message["role"] for message in asked.messages]


@ERAS
async def test_a_client_spawns_an_agent_on_the_configured_endpoint_and_asks_it(
    launch: Launch, backend: ScriptedBackend, era: str
) -> None:
    script(backend, launch)

    *heard, gone = await asked_of_a_scout(with_endpoint(launch, backend.url, BACKEND_KEY, MODEL), era)

    assert heard == HEARD and gone.endswith(GONE)
    first, second, third = backend.asked
    assert told(first) == ["system", "user"]
    assert "When does the goat eat?" in first.messages[1]["content"]
    assert "The goat eats at noon." in second.messages[-1]["content"]
    assert told(third) == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "And what?" in third.messages[-1]["content"]


@in_one_worker
async def test_so_it_does_on_a_model_behind_litellm(launch: Launch, litellm: LiteLlm) -> None:
    script(litellm.backend, launch)

    *heard, gone = await asked_of_a_scout(with_endpoint(launch, litellm.url, litellm.key, litellm.model), "2026-07-28")

    assert heard == HEARD and gone.endswith(GONE)


async def test_an_agent_of_the_endpoint_asks_another_one(launch: Launch, backend: ScriptedBackend) -> None:
    def answer(asked: Asked) -> Any:
        prompt, newest = asked.messages[1]["content"], asked.messages[-1]
        if "You are beta" in prompt:
            return Says("ready" if "<<<request" not in newest["content"] else "It is 7.")
        if newest["role"] == "tool":
            return Says(f"beta says: {json.loads(newest['content'])['answer']}")
        return calls("agents__request", target="beta", message="How many?")

    backend.answer_by(answer)
    goat = base(with_endpoint(launch, backend.url, BACKEND_KEY, MODEL))
    unasked = replace(goat, options=(*goat.options, *UNASKED))

    with anyio.fail_after(BOUND_S):
        async with connected(unasked, "2026-07-28") as client:
            said(await client.call_tool("agents__spawn", {"type": "general-purpose", "name": "beta"}))
            alpha = said(
                await client.call_tool(
                    "agents__spawn", {"type": "general-purpose", "name": "alpha", "input": "Ask beta."}
                )
            )
            answered = said(
                await client.call_tool("agents__request", {"target": "alpha", "correlationId": alpha["correlationId"]})
            )

    assert answered == {"answer": "beta says: It is 7."}


@pytest.mark.parametrize("kind", PYTHON, ids=str)
async def test_where_there_is_only_the_clients_own_model_spawn_says_what_would_work(
    launch: Launch, seek_node: SeekNode, kind: Kind
) -> None:
    """An agent that waits for requests outlives the call, and the client's model answers only during one."""
    steps = [
        call("agents__spawn", type="explorer", name="scout", input="When does the goat eat?"),
        call("agents__request", target="scout", message="When?"),
        call("Agent", description="Find the hour", prompt="When does the goat eat?"),
    ]

    with anyio.fail_after(BOUND_S):
        seen = await visit(kind, base(launch), steps, {SAMPLING: [thought("At noon.")]}, node=seek_node)

    spawned, asked, agent = seen.texts
    assert spawned.splitlines() == [
        "an agent that waits for requests goes on after this call, and the client's own model can only be asked while "
        "a call waits",
        "Use Agent for a single task; the user can set agent.base_url to a model that has no client.",
        "[E_INPUT]",
    ]
    assert "[E_DELIVERY]" in asked
    assert agent.startswith("At noon.")
    assert len(seen.prompts) == 1
