"""An agent as a task of the protocol, for a client that knows tasks, with a scripted model. ERA-7, D20"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client

from tests.e2e.goat import Launch, connected
from tests.e2e.scripted_backend import BACKEND_KEY, MODEL, Held, Says, ScriptedBackend, calls
from tests.e2e.wire import text_of
from tests.passthrough.client import Tasks
from tests.skill_client import ask

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

BOUND_S = 60.0
SOON_S = 0.3


@asynccontextmanager
async def client_with(launch: Launch, backend: ScriptedBackend) -> AsyncGenerator[Client]:
    """A client that declares tasks, of a goat-mcp whose agents this model runs."""
    settings = {
        "agent.base_url": backend.url,
        "agent.key": "${BACKEND_KEY}",
        "agent.model": MODEL,
        "tasks.after_s": SOON_S,
    }
    options = (
        "--mode",
        "bypassPermissions",
        *(part for name, value in settings.items() for part in ("--set", f"{name}={value}")),
    )
    goat = Launch(launch.folder, launch.workspace, options, {"BACKEND_KEY": BACKEND_KEY})
    async with connected(goat, "2026-07-28", extensions=[Tasks()]) as client:
        yield client


async def started(client: Client, **arguments: Any) -> str:
    """The id of the task that a call of `Agent` is answered with."""
    given = {"description": "a task", "prompt": "Begin.", **arguments}
    with anyio.fail_after(BOUND_S):
        task: dict[str, Any] = (await client.call_tool("Agent", given)).structured_content or {}
    assert task["resultType"] == "task"
    return task["taskId"]


async def until(client: Client, task: str, *statuses: str) -> dict[str, Any]:
    with anyio.fail_after(BOUND_S):
        while True:
            if (state := await ask(client, "tasks/get", taskId=task))["status"] in statuses:
                return state
            await anyio.sleep(0.05)


async def arrived(held: Held) -> None:
    assert await anyio.to_thread.run_sync(held.arrived.wait, BOUND_S)


@pytest.mark.parametrize("arguments", [{"run_in_background": True}, {}], ids=["in the background", "that takes long"])
async def test_what_an_agent_answers_is_the_result_of_its_task(launch: Launch, arguments: dict[str, Any]) -> None:
    with ScriptedBackend().running() as backend:
        held = Held(Says("Whole."))
        backend.script(calls("Glob", pattern="*.nothing"), held)
        async with client_with(launch, backend) as client:
            task = await started(client, **arguments)
            await arrived(held)
            working = await ask(client, "tasks/get", taskId=task)
            held.release.set()
            done = await until(client, task, "completed", "failed")

    assert working["status"] == "working"
    assert done["status"] == "completed"
    assert "Whole." in done["result"]["content"][0]["text"]
    assert done["result"]["isError"] is False
    assert len(backend.asked) == 2


@pytest.mark.parametrize("arguments", [{"run_in_background": True}, {}], ids=["in the background", "that takes long"])
async def test_cancelling_the_task_ends_the_agent(launch: Launch, arguments: dict[str, Any]) -> None:
    with ScriptedBackend().running() as backend:
        held = Held(calls("Write", file_path="late.txt", content="too late"))
        backend.script(held, Says("Never heard."))
        async with client_with(launch, backend) as client:
            task = await started(client, **arguments)
            await arrived(held)
            await ask(client, "tasks/cancel", taskId=task)
            state = await until(client, task, "cancelled", "completed", "failed")
            held.release.set()
            files = await client.call_tool("Glob", {"pattern": "late.txt"})

    assert state["status"] == "cancelled"
    assert len(backend.asked) == 1
    assert text_of(files.model_dump(by_alias=True)).startswith("No files found")
