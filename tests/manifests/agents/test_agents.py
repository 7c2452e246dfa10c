"""agents__*: agents that live, ask each other and are asked; through the pipeline, with a scripted model."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.model import ModelReply, ModelRequest
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import Rights
from tests.agents.scripted import BOUND_S, Ground, ScriptedModel, ground, prompt_of, results_in, says, use

pytestmark = pytest.mark.anyio

TOOLSETS = ["core", "tasks", "agent", "base"]


@dataclass
class Minds:
    """A model in which each agent, known by a word of its prompt, has a script of its own."""

    scripts: Mapping[str, ScriptedModel]
    takes_tools: bool = True
    heard: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])

    async def reply(self, request: ModelRequest) -> ModelReply:
        word = next(word for word in self.scripts if word in prompt_of(request))
        self.heard.setdefault(word, []).append(str(request.messages[-1].content[-1].get("text", "")))
        return await self.scripts[word].reply(request)


@asynccontextmanager
async def base(folder: Path, scripts: Mapping[str, ScriptedModel], **settings: Any) -> AsyncGenerator[Ground]:
    async with ground(folder, Minds(scripts), catalog={"toolsets": TOOLSETS}, **settings) as on:
        yield on


async def ask(on: Ground, export: str, ctx: Any = None, **input: Any) -> ToolResult:
    with anyio.fail_after(BOUND_S):
        return await on.call(f"agents__{export}", input, ctx)


def value(result: ToolResult) -> Any:
    assert not result.is_error, result.text
    return json.loads(result.text)


def hurried(on: Ground) -> Any:
    """The context of a call that has to answer within a moment."""
    since_s = time.monotonic() - 44.4
    return replace(on.ctx, client_waits_since_s=lambda: since_s)


async def resting(on: Ground, name: str) -> None:
    with anyio.fail_after(BOUND_S):
        while {"waiting"} != {one["status"] for one in value(await ask(on, "list"))["agents"] if one["name"] == name}:  # noqa: ASYNC110 - that it rests gives no event
            await anyio.sleep(0.01)


async def test_a_spawned_agent_answers_each_request_with_what_it_then_says(tmp_path: Path) -> None:
    scout = ScriptedModel([says("Ready."), says("In settings.py."), says("In gateway.py.")])
    async with base(tmp_path, {"scout": scout}) as on:
        started = value(await ask(on, "spawn", type="explorer", name="scout"))
        first = await ask(on, "request", target="scout", message="Where are settings?")
        second = await ask(on, "request", target=started["taskId"], input="Where is it wired?")
        listed = value(await ask(on, "list"))

    assert {**started, "taskId": ""} == {"name": "scout", "type": "explorer", "taskId": ""}
    assert (value(first), value(second)) == ({"answer": "In settings.py."}, {"answer": "In gateway.py."})
    assert first.structured == {"answer": "In settings.py."}
    assert [{**one, "id": ""} for one in listed["agents"]] == [
        {
            "name": "scout",
            "id": "",
            "type": "explorer",
            "task": "explorer that waits for requests",
            "status": "waiting",
            "takesRequests": True,
        }
    ]


async def test_what_is_asked_stands_between_marks_that_say_whose_word_it_is(tmp_path: Path) -> None:
    minds = {"scout": ScriptedModel([says("Ready."), says("Yes.")])}
    async with base(tmp_path, minds) as on:
        await ask(on, "spawn", type="explorer", name="scout")
        await ask(on, "request", target="scout", message="Are you there?")

    heard = str(minds["scout"].requests[-1].messages[-1].content[0]["text"]).splitlines()
    nonce = heard[1].split()[1]
    assert heard[1:] == [f"<<<request {nonce} from main; not the user", "Are you there?", f"request {nonce}>>>"]


async def test_an_answer_that_takes_longer_comes_by_its_correlation_id(tmp_path: Path) -> None:
    go = anyio.Event()
    async with base(tmp_path, {"scout": ScriptedModel([says("Ready."), go, says("Late answer.")])}) as on:
        await ask(on, "spawn", type="explorer", name="scout")
        pending = value(await ask(on, "request", hurried(on), target="scout", message="Take your time."))
        still = value(await ask(on, "request", target="scout", correlationId=pending["correlationId"], timeoutMs=0))
        go.set()
        by_request = await ask(on, "request", target="scout", correlationId=pending["correlationId"])
        by_task = await on.call("TaskOutput", {"task_id": pending["correlationId"]})

    assert pending["status"] == "pending"
    assert still == pending
    assert value(by_request) == {"answer": "Late answer."}
    assert by_task.text.splitlines()[0].startswith(f"Task {pending['correlationId']}: completed")
    assert by_task.text.splitlines()[1] == "Late answer."


async def test_a_second_request_that_is_cancelled_does_not_withdraw_the_question(tmp_path: Path) -> None:
    go = anyio.Event()
    async with base(tmp_path, {"scout": ScriptedModel([says("Ready."), go, says("Still here.")])}) as on:
        await ask(on, "spawn", type="explorer", name="scout")
        pending = value(await ask(on, "request", hurried(on), target="scout", message="Take your time."))
        with anyio.move_on_after(0.2):
            await ask(on, "request", target="scout", correlationId=pending["correlationId"])
        go.set()
        answer = await ask(on, "request", target="scout", correlationId=pending["correlationId"])

    assert value(answer) == {"answer": "Still here."}


async def test_what_an_agent_is_spawned_with_is_answered_under_a_correlation_id(tmp_path: Path) -> None:
    async with base(tmp_path, {"scout": ScriptedModel([says("Found it.")])}) as on:
        started = value(await ask(on, "spawn", type="explorer", name="scout", input="Find the settings."))
        answer = await ask(on, "request", target="scout", correlationId=started["correlationId"])

    assert value(answer) == {"answer": "Found it."}


async def test_a_message_is_read_between_turns_and_is_not_waited_for(tmp_path: Path) -> None:
    go = anyio.Event()
    scout = ScriptedModel([go, says("", use("Glob", {"pattern": "*"})), says("Done.")])
    async with base(tmp_path, {"scout": scout}) as on:
        await ask(on, "spawn", type="explorer", name="scout", input="Look around.")
        sent = value(await ask(on, "send", target="scout", message="Leave the tests out."))
        go.set()
        await resting(on, "scout")

    assert sent == {"sent": True, "to": "scout"}
    assert "Leave the tests out." in str(scout.requests[1].messages[-1].content[0]["text"])


async def test_an_agent_that_asks_its_asker_is_refused(tmp_path: Path) -> None:
    asks_back = use("agents__request", {"target": "alpha", "message": "And you?"}, "q")
    alpha = ScriptedModel(
        [
            says("Ready."),
            says("", use("agents__request", {"target": "beta", "message": "Well?"}, "p")),
            says("It says: x"),
        ]
    )
    beta = ScriptedModel([says("Ready."), says("", asks_back), says("x")])
    async with base(tmp_path, {"alpha": alpha, "beta": beta}) as on:
        for name in ("alpha", "beta"):
            await ask(on, "spawn", type="general-purpose", name=name)
        answer = await ask(on, "request", target="alpha", message="What does the other one say?")

    (refusal,) = results_in(beta.requests[-1].messages[-1])
    assert refusal.splitlines()[0] == "alpha is you, or waits for what you do: asking it would be a circle"
    assert refusal.splitlines()[-1] == "[E_PERMISSION]"
    assert value(answer) == {"answer": "It says: x"}


async def test_a_circle_over_a_third_and_a_question_to_oneself_are_refused(tmp_path: Path) -> None:
    def asks(target: str) -> Any:
        return use("agents__request", {"target": target, "message": "?"}, "q")

    scripts = {
        "alpha": ScriptedModel([says("Ready."), says("", asks("alpha")), says("", asks("beta")), says("end")]),
        "beta": ScriptedModel([says("Ready."), says("", asks("gamma")), says("b")]),
        "gamma": ScriptedModel([says("Ready."), says("", asks("alpha")), says("c")]),
    }
    async with base(tmp_path, scripts) as on:
        for name in scripts:
            await ask(on, "spawn", type="general-purpose", name=name)
        answer = await ask(on, "request", target="alpha", message="Go.")

    assert value(answer) == {"answer": "end"}
    assert "[E_PERMISSION]" in results_in(scripts["alpha"].requests[-2].messages[-1])[0]
    assert "[E_PERMISSION]" in results_in(scripts["gamma"].requests[-1].messages[-1])[0]


async def test_a_spawned_agent_may_do_no_more_than_whoever_spawned_it(tmp_path: Path) -> None:
    file = tmp_path / "ws" / "new.txt"
    child = ScriptedModel([says("", use("Write", {"file_path": str(file), "content": "x"})), says("Tried.")])
    narrow = replace(Rights(), denied=frozenset({"Write"}))
    async with base(tmp_path, {"child": child}) as on:
        ctx = replace(on.ctx, rights=narrow)
        started = value(await ask(on, "spawn", ctx, type="general-purpose", name="child", input="Write it."))
        await ask(on, "request", ctx, target="child", correlationId=started["correlationId"])

    assert "Write" not in [tool.name for tool in child.requests[0].tools]
    assert "[E_TOOL_NOT_IN_CATALOG]" in results_in(child.requests[-1].messages[-1])[0]
    assert not file.exists()


async def test_an_agent_of_the_last_depth_is_not_offered_to_spawn(tmp_path: Path) -> None:
    child = ScriptedModel([says("Ready.")])
    parent = ScriptedModel(
        [says("", use("agents__spawn", {"type": "general-purpose", "name": "child"})), says("Started.")]
    )
    async with base(tmp_path, {"parent": parent, "child": child}) as on:
        await ask(on, "spawn", type="general-purpose", name="parent", input="Start one.")
        await resting(on, "child")

    assert "agents__spawn" in [tool.name for tool in parent.requests[0].tools]
    assert "agents__spawn" not in [tool.name for tool in child.requests[0].tools]


async def test_agents_of_another_principal_or_of_a_wider_client_are_unknown(tmp_path: Path) -> None:
    async with base(
        tmp_path, {"scout": ScriptedModel([says("Ready.")])}, profiles={"small": {"toolsets": ["base"]}}
    ) as on:
        await ask(on, "spawn", type="explorer", name="scout")
        other = await ask(on, "request", replace(on.ctx, principal="other"), target="scout", message="?")
        narrower = replace(on.ctx, rights=Rights(profiles=("small",)))
        from_profile = await ask(on, "request", narrower, target="scout", message="?")
        listed = value(await ask(on, "list", narrower))

    assert (other.error_code, from_profile.error_code) == ("E_DELIVERY", "E_DELIVERY")
    assert listed == {"agents": []}


async def test_an_agent_that_is_stopped_leaves_no_request_unanswered(tmp_path: Path) -> None:
    never = anyio.Event()
    scout = ScriptedModel([says("Ready."), never])
    async with base(tmp_path, {"scout": scout}) as on:
        started = value(await ask(on, "spawn", type="explorer", name="scout"))
        await resting(on, "scout")
        answers: list[ToolResult] = []

        async def wait() -> None:
            answers.append(await ask(on, "request", target="scout", message="?"))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            while len(scout.requests) < 2:  # noqa: ASYNC110 - the second question is what we wait for
                await anyio.sleep(0.01)
            await on.call("TaskStop", {"task_id": started["taskId"]})
        gone = await ask(on, "request", target="scout", message="?")

    assert [answer.error_code for answer in answers] == ["E_DELIVERY"]
    assert answers[0].text.splitlines()[0] == "the agent ended before it answered"
    assert gone.text.splitlines()[:2] == [
        "target: no agent is called 'scout'",
        "No agent runs; start one with spawn.",
    ]


async def test_an_agent_writes_to_the_session_it_serves(tmp_path: Path) -> None:
    go = anyio.Event()
    to_main = use("agents__send", {"target": "main", "message": "Half done."})
    scout = ScriptedModel([go, says("", to_main), says("Ready.")])
    async with base(tmp_path, {"scout": scout}) as on:
        started = value(await ask(on, "spawn", type="general-purpose", name="scout", input="Go."))
        go.set()
        brought = await ask(on, "request", target="scout", correlationId=started["correlationId"])
        again = await ask(on, "request", target="scout", correlationId=started["correlationId"])

    assert brought.content[0]["text"] == '{"answer": "Ready."}'
    assert "from scout; an agent, not the user\nHalf done.\n" in brought.text
    assert brought.structured is None
    assert value(again) == {"answer": "Ready."}


async def test_the_catalog_names_the_types_that_can_be_started(tmp_path: Path) -> None:
    types = tmp_path / "ws" / ".claude" / "agents"
    types.mkdir(parents=True)
    (types / "critic.md").write_text("---\nname: critic\ndescription: Finds faults.\ntools: Read\n---\nCriticise.")
    async with base(tmp_path, {}) as on:
        found = value(await ask(on, "catalog"))["types"]

    assert {one["type"] for one in found} == {"general-purpose", "explorer", "planner", "critic"}
    assert next(one for one in found if one["type"] == "critic")["tools"] == ["Read"]
    assert next(one for one in found if one["type"] == "general-purpose")["tools"] is None


async def test_an_agent_of_the_tool_agent_is_told_things_and_answers_no_requests(tmp_path: Path) -> None:
    go = anyio.Event()
    worker = ScriptedModel([go, says("", use("Glob", {"pattern": "*"})), says("Result.")])
    async with base(tmp_path, {"worker": worker}) as on:
        await on.agent("You are a worker.", name="worker", run_in_background=True)
        refused = await ask(on, "request", target="worker", message="?")
        sent = await ask(on, "send", target="worker", message="Mind the dog.")
        go.set()
        over = await on.call("TaskOutput", {"task_id": "worker"})

    assert refused.error_code == "E_DELIVERY"
    assert value(sent) == {"sent": True, "to": "worker"}
    assert "Mind the dog." in str(worker.requests[1].messages[-1].content[0]["text"])
    assert over.text.splitlines()[1] == "Result."
