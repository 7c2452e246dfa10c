"""Everything a user does with the built-in tools, one after the other, over each transport and in each era."""

from __future__ import annotations

import re
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import TextContent

from tests.e2e.goat import HttpGoat, Launch, connected
from tests.e2e.test_asking_over_http import BOUND_S, until_there

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

TASK_STARTED = re.compile(r"Task started: (\S+)")


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, shared_launch: Launch) -> Launch | HttpGoat:
    return request.getfixturevalue("shared_http") if request.param == "http" else shared_launch


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_user_reads_searches_edits_writes_and_runs(
    target: Launch | HttpGoat, shared_launch: Launch, mode: str
) -> None:
    # Visits share a workspace, so each has a folder of its own.
    folder = shared_launch.workspace / f"{type(target).__name__}-{mode}"
    page, menu = folder / "page.txt", folder / "deep" / "menu.txt"
    folder.mkdir()
    page.write_text("one\ntwo\nthree\n")
    async with connected(target, mode) as client:
        assert await say(client, "Read", file_path=str(page)) == "1\tone\n2\ttwo\n3\tthree"

        edited = await say(client, "Edit", file_path=str(page), old_string="two", new_string="2")
        assert edited.startswith(f"Edited {page}: 1 replacement (tier 1).")
        assert [line for line in edited.splitlines() if re.match(r"[-+ ]*\d*\s*[-+]", line)] != []
        assert page.read_text() == "one\n2\nthree\n"

        written = await say(client, "Write", file_path=str(menu), content="hay\noats\n")
        assert written == f"Created {menu} (2 lines)."
        assert menu.read_text() == "hay\noats\n"

        assert await say(client, "Glob", pattern="**/menu.txt", path=str(folder)) == str(menu)
        assert await say(client, "Grep", pattern="^oats$", path=str(folder)) == str(menu)
        assert await say(client, "Grep", pattern="nowhere", path=str(folder)) == "No matches found"
        assert await say(client, "Bash", command=f"cd {folder} && wc -l < page.txt") == "3"
        assert await say(client, "Bash", command="pwd") == str(folder)
        assert await say(client, "Bash", command=f"cd {shared_launch.workspace}") == "(no output)"

        started = await say(client, "Bash", command="echo begun; read -t 0.2 < <(:); echo done", run_in_background=True)
        task = task_of(started)
        ended = await say(client, "TaskOutput", task_id=task, timeout=10_000)
        assert ended.startswith(f"Task {task}: completed")
        assert "begun\ndone" in ended

        endless = task_of(await say(client, "Bash", command="sleep 600", run_in_background=True))
        running = await say(client, "TaskOutput", task_id=endless, block=False)
        assert running.startswith(f"Task {endless}: running")
        assert await say(client, "TaskStop", task_id=endless) == f"Stopped task {endless} (sleep 600)."
        stopped = await say(client, "TaskOutput", task_id=endless)
        assert stopped.startswith(f"Task {endless}: stopped")


async def test_a_long_command_can_be_cancelled_and_the_next_one_runs(launch: Launch) -> None:
    running, ended = launch.workspace / "running", launch.workspace / "ended"
    command = f"trap 'touch {ended}; exit' TERM; touch {running}; sleep 600 & wait"
    answer = ""
    async with connected(launch, "2026-07-28") as client, anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "Bash", {"command": command})
        with anyio.fail_after(BOUND_S):
            await until_there(running)
        group.cancel_scope.cancel()
        with anyio.fail_after(BOUND_S, shield=True):
            answer = await say(client, "Bash", command="echo next")
            await until_there(ended)

    assert answer == "next"


def task_of(text: str) -> str:
    found = TASK_STARTED.search(text)
    assert found is not None, text
    return found[1]


async def say(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a call that must succeed."""
    result = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    assert not result.is_error, text
    return text
