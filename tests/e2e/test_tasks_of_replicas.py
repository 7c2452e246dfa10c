"""Background tasks of several replicas: read and stopped from any of them, and lost with the one that ran them."""

from __future__ import annotations

import json
import re
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import TextResourceContents

from tests.e2e.goat import connected
from tests.e2e.replicas import LEASE_S, WITHIN_S, Team, team, until

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.real_processes]


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    return "".join(block.text for block in answer.content if block.type == "text")


async def clients(ours: Team, stack: AsyncExitStack) -> list[Client]:
    return [await stack.enter_async_context(connected(goat, "2026-07-28")) for goat in ours.goats.values()]


async def listed(client: Client) -> dict[str, dict[str, Any]]:
    (content,) = (await client.read_resource("goat://tasks")).contents
    assert isinstance(content, TextResourceContents)
    return {task["id"]: task for task in json.loads(content.text)["tasks"]}


async def started(client: Client, command: str) -> str:
    """The id of its task."""
    text = await text_of(client, "Bash", command=command, run_in_background=True)
    found = re.search(r"[a-z2-7]{32}", text)
    assert found is not None, text
    return found.group()


async def test_a_task_is_read_and_stopped_from_another_replica(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        ours = stack.enter_context(team(tmp_path, "one", "two"))
        one, two = await clients(ours, stack)
        long = await started(one, "echo begun; sleep 600")
        short = await started(one, "echo hello; exit 3")

        ended = await text_of(two, "TaskOutput", task_id=short, timeout=30_000)
        runs = await text_of(two, "TaskOutput", task_id=long, block=False)
        tasks = await listed(two)
        stopped = await text_of(two, "TaskStop", task_id=long)
        after = await text_of(one, "TaskOutput", task_id=long)
        unknown = await text_of(two, "TaskOutput", task_id="a" * 32)

    assert "exit code 3" in ended and "hello" in ended
    assert f"Task {long}: running" in runs and "begun" in runs
    assert set(tasks) == {long, short}
    assert f"Stopped task {long}" in stopped
    assert "stopped" in after
    assert "E_TASK_UNKNOWN" in unknown


async def test_a_task_of_a_killed_replica_says_that_it_may_have_taken_effect(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        ours = stack.enter_context(team(tmp_path, "one", "two"))
        one, two = await clients(ours, stack)
        effects = tmp_path / "ws" / "effects"
        long = await started(one, "echo once >> effects; sleep 600")
        short = await started(one, "echo hello")
        await text_of(two, "TaskOutput", task_id=short, timeout=30_000)
        await anyio.to_thread.run_sync(lambda: until(effects.exists))

        ours.send("one", signal.SIGKILL)
        with anyio.fail_after(WITHIN_S):
            while "orphaned" not in (lost := await text_of(two, "TaskOutput", task_id=long, block=False)):
                assert "task_id" not in lost
                await anyio.sleep(0.2)
        kept = await text_of(two, "TaskOutput", task_id=short)
        tasks = await listed(two)
        await anyio.sleep(LEASE_S)  # nobody takes it over

    assert "the replica one, which ran it, has ended; it may have taken effect, and is not run again" in lost
    assert "hello" in kept
    assert (tasks[long]["status"], tasks[short]["status"]) == ("orphaned", "completed")
    assert effects.read_text() == "once\n"
