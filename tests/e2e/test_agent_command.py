"""Subagents run by another program's command line (`agent.command`), in a real goat-mcp."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent

from tests.e2e.goat import Launch, connected
from tests.e2e.processes import Seen, descendants, left_after, mentioning
from tests.e2e.wire import Wire

pytestmark = [pytest.mark.real_processes, pytest.mark.e2e, pytest.mark.anyio]

BOUND_S = 60
# Speaks as `claude -p --output-format stream-json` does. `wait` in the prompt makes it stay, with a child of its own.
PROGRAM = """
import json, subprocess, sys, time
prompt = sys.stdin.read()
session = sys.argv[sys.argv.index("--resume") + 1] if "--resume" in sys.argv else "s-1"
def tell(**event):
    print(json.dumps({**event, "session_id": session}), flush=True)
tell(type="system", subtype="init")
use = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "notes.md"}}
tell(type="assistant", message={"id": "m1", "content": [use]})
if "wait" in prompt:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    time.sleep(600)
usage = {"input_tokens": 40, "cache_read_input_tokens": 2, "output_tokens": 8}
tell(type="result", subtype="success", is_error=False, result="Heard: " + prompt.splitlines()[-1] + " " + session,
    num_turns=2, usage=usage)
"""


@pytest.fixture
def goat(launch: Launch) -> Launch:
    program = launch.folder / "agent"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o755)
    command = json.dumps([str(program), ["--resume", "{resume}"], ["--disallowedTools", "{denied_tools}"]])
    return Launch(launch.folder, launch.workspace, ("--set", f"agent.command={command}"))


async def agent(client: Client, prompt: str, **fields: Any) -> CallToolResult:
    with anyio.fail_after(BOUND_S):
        return await client.call_tool("Agent", {"description": "a task", "prompt": prompt, **fields})


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def facts_of(result: CallToolResult) -> dict[str, Any]:
    return result.structured_content or (result.meta or {}).get("goat-mcp/facts", {})


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_its_answer_is_the_agents_and_it_can_be_resumed(goat: Launch, era: str) -> None:
    async with connected(goat, era) as client:
        first = await agent(client, "one")
        second = await agent(client, "two", resume=facts_of(first)["agent_id"])

    assert text_of(first).startswith("Heard: one s-1\n[")
    assert (facts_of(first)["turns"], facts_of(first)["tokens"]) == (2, 50)
    assert text_of(second).startswith("Heard: two s-1\n[")


async def test_an_agent_whose_limits_it_has_no_place_for_is_refused(goat: Launch) -> None:
    async with connected(goat, "2026-07-28") as client:
        refused = await agent(client, "one", subagent_type="explorer")

    assert facts_of(refused)["error"]["code"] == "E_NOT_CONFIGURED"
    assert "agent.command has no {allowed_tools}" in text_of(refused)


async def test_task_stop_ends_all_of_it(goat: Launch) -> None:
    async with connected(goat, "2026-07-28") as client:
        task = facts_of(await agent(client, "wait", run_in_background=True))["task_id"]
        programs = await _running(goat.folder / "agent")
        stopped = await client.call_tool("TaskStop", {"task_id": task})
        left = left_after(programs, "no such text", BOUND_S)

    assert text_of(stopped).startswith(f"Stopped task {task}")
    assert len(programs) >= 2
    assert left == []


async def test_a_goat_mcp_that_is_killed_takes_it_along(goat: Launch) -> None:
    wire = Wire(goat.command, goat.environment, goat.workspace, goat.folder / "stderr")
    with wire:
        wire.handshake()
        arguments = {"description": "a task", "prompt": "wait", "run_in_background": True}
        wire.request("tools/call", {"name": "Agent", "arguments": arguments})
        programs = await _running(goat.folder / "agent")
        wire.process.send_signal(signal.SIGKILL)

        assert left_after(programs, str(goat.folder), BOUND_S) == []


async def _running(program: Path) -> list[Seen]:
    """The program and its child, once both run."""
    with anyio.fail_after(BOUND_S):
        while True:
            for seen in mentioning(str(program)):
                # goat-mcp names it too, in its settings.
                if seen.command.split()[1] == str(program) and (children := descendants(seen.pid)):
                    return [seen, *children]
            await anyio.sleep(0.1)
