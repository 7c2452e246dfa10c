"""What an agent may do: never more than its starter, and nothing that only who talks with the user may do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DENY
from goat_mcp.core.elicitation import Answer, Ask, Form, Reply
from tests.agents.scripted import Ground, ScriptedModel, ground, results_in, says, use

pytestmark = pytest.mark.anyio

WRITE = use("Write", {"file_path": "@x.txt", "content": "x"}, "w")
AGENT = use("Agent", {"description": "deeper", "prompt": "deeper"}, "n")


def define(on: Ground, name: str, front: str) -> None:
    folder = on.workspace / ".claude" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"---\nname: {name}\ndescription: for tests\n{front}\n---\nYou are {name}.\n")


def told_of(model: ScriptedModel, turn: int = 0) -> set[str]:
    return {tool.name for tool in model.requests[turn].tools}


def answer(model: ScriptedModel, turn: int = 1) -> str:
    return results_in(model.requests[turn].messages[-1])[0]


def person(reply: str, asked: list[str]) -> Ask:
    async def ask(form: Form) -> Answer:
        asked.append(form.message)
        return Answer(Reply.ACCEPTED, {form.questions[0].name: reply})

    return ask


async def test_an_explorer_is_not_told_of_write_and_cannot_call_it(tmp_path: Path) -> None:
    model = ScriptedModel([says("", WRITE)])
    async with ground(tmp_path, model) as on:
        await on.agent(subagent_type="explorer")

        assert not (on.workspace / "x.txt").exists()
    assert {"Read", "Glob", "Grep"} <= told_of(model)
    assert not {"Write", "Edit", "Bash", "Agent"} & told_of(model)
    assert "[E_TOOL_NOT_IN_CATALOG]" in answer(model)


async def test_no_agent_is_given_what_is_for_whoever_talks_with_the_user(tmp_path: Path) -> None:
    model = ScriptedModel([says("", use("TodoWrite", {"todos": []}, "t"))])
    async with ground(tmp_path, model) as on:
        await on.agent()

    assert not {"AskUserQuestion", "ExitPlanMode", "TodoWrite", "TeamCreate"} & told_of(model)
    assert "[E_TOOL_NOT_IN_CATALOG]" in answer(model)


@pytest.mark.parametrize("mode", ["plan", "dontAsk"])
async def test_the_calls_mode_narrows_what_the_session_allows(tmp_path: Path, mode: str) -> None:
    model = ScriptedModel([says("", WRITE)])
    async with ground(tmp_path, model) as on:
        await on.agent(mode=mode)

        assert not (on.workspace / "x.txt").exists()
    assert ("[E_PLAN_MODE]" if mode == "plan" else "[E_PERMISSION]") in answer(model)


async def test_a_wider_mode_than_the_sessions_changes_nothing(tmp_path: Path) -> None:
    # PR-26
    model = ScriptedModel([says("", WRITE)])
    async with ground(tmp_path, model, mode="default") as on:
        await on.agent(mode="bypassPermissions")

        assert not (on.workspace / "x.txt").exists()
    assert "permissions.allow: [Write]" in answer(model)


async def test_a_session_that_plans_starts_no_agent(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with ground(tmp_path, model, mode="plan") as on:
        result = await on.agent()

    assert (result.error_code, model.requests) == ("E_PLAN_MODE", [])


async def test_a_deny_rule_holds_inside_agents(tmp_path: Path) -> None:
    model = ScriptedModel([says("", WRITE)])
    async with ground(tmp_path, model, permissions={"deny": ["Write"]}) as on:
        await on.agent()

        assert not (on.workspace / "x.txt").exists()
    assert "denied by rule Write" in answer(model)


async def test_what_the_host_would_be_asked_is_asked_of_the_person_for_an_agent(tmp_path: Path) -> None:
    asked: list[str] = []
    model = ScriptedModel([says("", WRITE)])
    async with ground(tmp_path, model, mode="default") as on:
        await on.agent(ctx=replace(on.ctx, ask=person(ALLOW_ONCE, asked)))

        assert (on.workspace / "x.txt").read_text() == "x"
    assert [message.splitlines()[0] for message in asked] == ["Allow Write? (mode default)"]


async def test_a_person_who_refuses_is_heeded_and_the_agent_told(tmp_path: Path) -> None:
    model = ScriptedModel([says("", WRITE)])
    async with ground(tmp_path, model, mode="default") as on:
        await on.agent(ctx=replace(on.ctx, ask=person(DENY, [])))

        assert not (on.workspace / "x.txt").exists()
    assert "the user refused Write" in answer(model)


async def test_in_the_background_nobody_can_be_asked(tmp_path: Path) -> None:
    asked: list[str] = []
    model = ScriptedModel([says("", WRITE)])
    async with ground(tmp_path, model, mode="default") as on:
        started = await on.agent(run_in_background=True, ctx=replace(on.ctx, ask=person(ALLOW_ONCE, asked)))
        await on.call("TaskOutput", {"task_id": (started.facts or {})["agent_id"]})

        assert not (on.workspace / "x.txt").exists()
    assert asked == []
    assert "[E_APPROVAL_PENDING]" in answer(model)


async def test_disallowed_tools_win_over_tools(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with ground(tmp_path, model) as on:
        define(on, "reviewer", "tools: Read, Grep, Bash\ndisallowedTools: [Bash]")
        await on.agent(subagent_type="reviewer")

    assert told_of(model) == {"Read", "Grep"}
    assert model.requests[0].system.startswith("You are reviewer.")


async def test_agents_nest_two_deep(tmp_path: Path) -> None:
    model = ScriptedModel([says("", AGENT), says("", AGENT), says("inner"), says("outer")])
    async with ground(tmp_path, model) as on:
        result = await on.agent()

    assert result.text.startswith("outer")
    assert ("Agent" in told_of(model, 0), "Agent" in told_of(model, 1)) == (True, False)
    assert "[E_TOOL_NOT_IN_CATALOG]" in answer(model, 2)
    assert answer(model, 3).startswith("inner")


async def test_an_agent_that_plans_starts_none_that_does_not(tmp_path: Path) -> None:
    nested = use("Agent", {"description": "deeper", "prompt": "deeper", "mode": "bypassPermissions"}, "n")
    model = ScriptedModel([says("", nested)])
    async with ground(tmp_path, model) as on:
        define(on, "chief", "permissionMode: plan")
        await on.agent(subagent_type="chief")

    assert "[E_PLAN_MODE]" in answer(model)
    assert len(model.requests) == 2


async def test_a_nested_agent_keeps_to_its_starters_tools(tmp_path: Path) -> None:
    nested = use("Agent", {"description": "deeper", "prompt": "deeper", "subagent_type": "general-purpose"}, "n")
    model = ScriptedModel([says("", nested), says("", WRITE)])
    async with ground(tmp_path, model) as on:
        define(on, "chief", "tools: Read, Agent")
        await on.agent(subagent_type="chief")

        assert not (on.workspace / "x.txt").exists()
    assert told_of(model, 1) == {"Read"}
    assert "[E_TOOL_NOT_IN_CATALOG]" in answer(model, 2)


async def test_what_its_starter_has_read_an_agent_has_not(tmp_path: Path) -> None:
    edit = use("Edit", {"file_path": "@a.txt", "old_string": "a", "new_string": "b"}, "e")
    model = ScriptedModel([says("", edit)])
    async with ground(tmp_path, model) as on:
        (on.workspace / "a.txt").write_text("a\n")
        await on.call("Read", {"file_path": "@a.txt"})
        await on.agent()

        assert (on.workspace / "a.txt").read_text() == "a\n"
    assert "[E_NOT_READ]" in answer(model)


async def test_an_agents_shell_stands_elsewhere_than_its_starters(tmp_path: Path) -> None:
    model = ScriptedModel([says("", use("Bash", {"command": "cd sub && pwd"}, "b"))])
    async with ground(tmp_path, model) as on:
        (on.workspace / "sub").mkdir()
        await on.agent()
        mine: Any = await on.call("Bash", {"command": "pwd"})

    assert answer(model) == str(on.workspace / "sub")
    assert mine.text == str(on.workspace)


async def test_each_call_of_an_agent_is_recorded_under_its_session_with_an_id_of_its_own(tmp_path: Path) -> None:
    import json

    glob = use("Glob", {"pattern": "*"}, "")
    async with ground(tmp_path, ScriptedModel([says("", glob, glob)])) as on:
        result = await on.agent()
        lines = [json.loads(line) for line in (on.gateway.state.path / "audit.jsonl").read_text().splitlines()]

    globs = [line for line in lines if line["tool"] == "Glob" and line["event"] == "outcome"]
    assert {line["session"] for line in globs} == {f"agent:{(result.facts or {})['agent_id']}"}
    assert len({line["call_id"] for line in globs}) == 2
