"""Subagents on a model behind a real LiteLLM proxy, started by a client of a real goat-mcp."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent

from tests.e2e.goat import Launch, connected
from tests.e2e.litellm_proxy import LiteLlm, in_one_worker
from tests.e2e.scripted_backend import BACKEND_KEY, Asked, Calls, Fails, Held, Says, ToolCall, calls

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, in_one_worker, pytest.mark.full]

BOUND_S = 60
NOTES = "1\t# Notes\n2\t\n3\tThe goat eats at noon."


@pytest.fixture
def goat(launch: Launch, litellm: LiteLlm) -> Generator[Launch]:
    """goat-mcp with the proxy for its agents. The key is a reference: it stands in no file and no argument."""
    yield with_endpoint(launch, litellm.url, litellm.key, litellm.model)


def with_endpoint(launch: Launch, url: str, key: str, model: str) -> Launch:
    settings = {"base_url": url, "key": "${PROXY_KEY}", "model": model, "models.opus": "scripted-other"}
    options = [part for name, value in settings.items() for part in ("--set", f"agent.{name}={value}")]
    return Launch(launch.folder, launch.workspace, tuple(options), {"PROXY_KEY": key})


async def agent(client: Client, prompt: str = "When does the goat eat?", **fields: Any) -> CallToolResult:
    with anyio.fail_after(BOUND_S):
        return await client.call_tool("Agent", {"description": "goat's meals", "prompt": prompt, **fields})


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def facts_of(result: CallToolResult) -> dict[str, Any]:
    return result.structured_content or (result.meta or {}).get("goat-mcp/facts", {})


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_an_agent_reads_a_file_and_answers(goat: Launch, litellm: LiteLlm, era: str) -> None:
    notes = str(goat.workspace / "notes.md")
    litellm.backend.script(
        Calls((ToolCall("Read", {"file_path": notes}, "call_a"),), "I look it up.", 100, 20), Says("At noon.", 150, 5)
    )

    async with connected(goat, era) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        result = await agent(client, model="opus")

    assert not result.is_error
    assert text_of(result).startswith("At noon.\n[")
    facts = facts_of(result)
    assert (facts["status"], facts["turns"], facts["tokens"]) == ("completed", 2, 275)
    first, second = litellm.backend.asked
    assert first.body["model"] == "scripted-other"
    offered = {tool["function"]["name"] for tool in first.body["tools"]}
    assert {"Read", "Bash", "Edit"} <= offered <= listed
    assert "AskUserQuestion" not in offered
    assert [message["role"] for message in second.messages] == ["system", "user", "assistant", "tool"]
    assert second.messages[3] == {"role": "tool", "tool_call_id": "call_a", "content": NOTES}


async def test_what_a_model_gets_wrong_it_is_told(goat: Launch, litellm: LiteLlm) -> None:
    litellm.backend.script(
        Calls(
            (
                ToolCall("Read", '{"file_path": ', "call_a"),
                ToolCall("Read", {"file_path": "/no/such/file"}, "call_b"),
                ToolCall("Dig", {}, "call_c"),
            )
        ),
        Says("I give up."),
    )

    async with connected(goat, "2026-07-28") as client:
        result = await agent(client)

    assert text_of(result).startswith("I give up.")
    answers = {message["tool_call_id"]: message["content"] for message in litellm.backend.asked[1].messages[3:]}
    assert answers["call_a"].startswith("Error: not run: function.arguments is not JSON")
    assert answers["call_b"].startswith("Error: ")
    assert "Dig" in answers["call_c"]


async def test_a_models_thoughts_go_back_to_it(goat: Launch, litellm: LiteLlm) -> None:
    thoughts = {"reasoning_content": "The notes will say."}
    litellm.backend.script(Calls((ToolCall("Glob", {"pattern": "*.md"}),), more=thoughts), Says("Done."))

    async with connected(goat, "2026-07-28") as client:
        await agent(client)

    assert litellm.backend.asked[1].messages[2]["reasoning_content"] == "The notes will say."


async def test_an_agent_goes_on_where_it_was(goat: Launch, litellm: LiteLlm) -> None:
    litellm.backend.script(Says("At noon."), Says("Hay."))

    async with connected(goat, "2026-07-28") as client:
        first = await agent(client)
        second = await agent(client, "And what?", resume=facts_of(first)["agent_id"])

    assert text_of(second).startswith("Hay.")
    told = litellm.backend.asked[1].messages[1:]
    assert [(message["role"], message["content"]) for message in told] == [
        ("user", "When does the goat eat?"),
        ("assistant", "At noon."),
        ("user", "And what?"),
    ]


async def test_an_agent_in_the_background_is_read_with_task_output(goat: Launch, litellm: LiteLlm) -> None:
    held = Held(Says("At noon.", 30, 3))
    litellm.backend.script(held)

    async with connected(goat, "2026-07-28") as client:
        started = await agent(client, run_in_background=True)
        task = facts_of(started)["task_id"]
        assert await anyio.to_thread.run_sync(held.arrived.wait, BOUND_S)
        running = await client.call_tool("TaskOutput", {"task_id": task, "block": False})
        held.release.set()
        ended = await client.call_tool("TaskOutput", {"task_id": task})

    assert f"Task started: {task}" in text_of(started)
    assert (facts_of(running)["status"], facts_of(running)["task_type"]) == ("running", "agent")
    assert text_of(ended).startswith(f"Task {task}: completed")
    assert "At noon." in text_of(ended)


async def test_a_stopped_agent_asks_no_more(goat: Launch, litellm: LiteLlm) -> None:
    held = Held(calls("Read", file_path="notes.md"))
    litellm.backend.script(held, Says("never asked"))

    async with connected(goat, "2026-07-28") as client:
        task = facts_of(await agent(client, run_in_background=True))["task_id"]
        assert await anyio.to_thread.run_sync(held.arrived.wait, BOUND_S)
        stopped = await client.call_tool("TaskStop", {"task_id": task})
        held.release.set()
        after = await client.call_tool("TaskOutput", {"task_id": task})

    assert text_of(stopped).startswith(f"Stopped task {task}")
    assert facts_of(after)["status"] == "stopped"
    assert (len(litellm.backend.asked), litellm.backend.unsaid) == (1, 1)


async def test_agents_side_by_side_each_have_their_own_conversation(goat: Launch, litellm: LiteLlm) -> None:
    def answer(asked: Asked) -> Says:
        return Says("Answer to " + asked.messages[1]["content"])

    litellm.backend.answer_by(answer)
    results: dict[str, str] = {}

    async with connected(goat, "2026-07-28") as client:

        async def ask(prompt: str) -> None:
            results[prompt] = text_of(await agent(client, prompt)).splitlines()[0]

        async with anyio.create_task_group() as group:
            for prompt in ("one", "two", "three"):
                group.start_soon(ask, prompt)

    assert results == {prompt: f"Answer to {prompt}" for prompt in ("one", "two", "three")}


async def test_a_model_that_fails_is_told_as_it_is_and_nothing_is_left(goat: Launch, litellm: LiteLlm) -> None:
    litellm.backend.script(*[Fails(500, "the model tripped")] * 3)

    async with connected(goat, "2026-07-28") as client:
        result = await agent(client)
        left = list((goat.folder / "state").rglob("agents/*"))

    assert result.is_error
    assert "the model tripped" in text_of(result)
    assert facts_of(result)["error"]["code"] == "E_MODEL"
    assert BACKEND_KEY not in text_of(result)
    assert left == []


async def test_a_failure_on_the_way_keeps_what_was_done(goat: Launch, litellm: LiteLlm) -> None:
    litellm.backend.script(calls("Glob", pattern="*.md"), Fails(400, "context length exceeded"), Says("Ah."))

    async with connected(goat, "2026-07-28") as client:
        failed = await agent(client)
        resumed = await agent(client, "Go on.", resume=facts_of(failed)["agent_id"])

    assert "context length exceeded" in text_of(failed)
    assert text_of(resumed).startswith("Ah.")
    told = litellm.backend.asked[2].messages
    assert [message["role"] for message in told] == ["system", "user", "assistant", "tool", "user"]


async def test_a_wrong_key_names_the_setting_and_is_not_shown(launch: Launch, litellm: LiteLlm) -> None:
    goat = with_endpoint(launch, litellm.url, "sk-not-the-one", litellm.model)

    async with connected(goat, "2026-07-28") as client:
        result = await agent(client)

    assert facts_of(result)["error"]["code"] == "E_NOT_CONFIGURED"
    assert "agent.key" in text_of(result)
    assert "sk-not-the-one" not in text_of(result)


async def test_a_proxy_that_is_down_names_the_setting(launch: Launch, litellm: LiteLlm) -> None:
    goat = with_endpoint(launch, "http://127.0.0.1:9/v1", litellm.key, litellm.model)

    async with connected(goat, "2026-07-28") as client:
        result = await agent(client)
        tasks = await client.call_tool("TaskOutput", {"task_id": "none"})

    assert facts_of(result)["error"]["code"] == "E_NETWORK"
    assert "agent.base_url" in text_of(result)
    assert facts_of(tasks)["error"]["code"] == "E_TASK_UNKNOWN"
