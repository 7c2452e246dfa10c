"""Hooks and agents: their calls go through the same hooks, and SubagentStop is told of their end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.scripted import ScriptedModel, ground, says, use
from tests.calls.hooks.programs import script

pytestmark = pytest.mark.anyio

GLOB = use("Glob", {"pattern": "*"}, "g")


async def test_the_end_of_an_agent_is_told_and_what_a_hook_says_of_it_reaches_its_starter(tmp_path: Path) -> None:
    stop = script(tmp_path, "stop", "echo 'Nobody ran the tests.' >&2; exit 2")
    other = script(tmp_path, "other")
    model = ScriptedModel([says("", GLOB), says("All done.")])
    groups = [
        {"matcher": "general-purpose", "hooks": [{"command": list(stop.argv)}]},
        {"matcher": "explorer", "hooks": [{"command": list(other.argv)}]},
    ]

    async with ground(tmp_path, model, hooks={"SubagentStop": groups}) as on:
        result = await on.agent()

    (told,) = stop.inputs
    assert "All done." in result.text
    assert "[Nobody ran the tests.]" in result.text
    assert {name: told[name] for name in ("hook_event_name", "session_id", "agent_type", "last_assistant_message")} == {
        "hook_event_name": "SubagentStop",
        "session_id": "stdio",
        "agent_type": "general-purpose",
        "last_assistant_message": "All done.",
    }
    assert other.inputs == []


async def test_an_agents_calls_meet_the_hooks_of_its_starter(tmp_path: Path) -> None:
    guard = script(tmp_path, "guard", "echo 'not here' >&2; exit 2")
    model = ScriptedModel([says("", GLOB), says("I could not look.")])
    hooks = {"PreToolUse": [{"matcher": "Glob", "hooks": [{"command": list(guard.argv)}]}]}

    async with ground(tmp_path, model, hooks=hooks) as on:
        await on.agent()

    (told,) = guard.inputs
    assert (told["session_id"], told["tool_name"]) == ("stdio", "Glob")
    assert told["agent_id"]
