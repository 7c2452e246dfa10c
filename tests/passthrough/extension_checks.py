"""The rows of the table that are extensions with methods of their own: tasks (SEP-2663) and skills (SEP-2640)."""

from __future__ import annotations

import hashlib
from typing import Any

import anyio

from tests.conformance.fixture import skills, tasks
from tests.conformance.fixture.one_era import STATELESS
from tests.conformance.fixture.skills import FILES
from tests.passthrough.client import WAIT_S, Seen, text_of
from tests.skill_client import ask, skill
from tests.skill_client import skills as listed_skills
from tests.skill_client import text as text_of_file

_FOLDED = "git-workflow"
"""The skill that has folders."""
_POLL_S = 0.05


async def check_tasks(seen: Seen) -> None:
    """A task is made, read, asked for what it needs, and cancelled; its result is the call's."""
    await _check_declared(seen, tasks.EXTENSION)
    done = await _until(seen, await _created(seen, "slow_compute", seconds=0.3, label="it"), "completed")
    assert done["result"]["content"][0]["text"] == "computed it", f"the result is {done['result']}"
    asking = await _created(seen, "confirm_delete", filename="a.txt")
    question = (await _until(seen, asking, "input_required"))["inputRequests"]["confirm"]
    assert question["method"] == "elicitation/create", f"asked {question}"
    answers = {"confirm": {"action": "accept", "content": {"confirm": True}}}
    await ask(seen.client, "tasks/update", taskId=asking, inputResponses=answers)
    assert (await _until(seen, asking, "completed"))["result"]["content"][0]["text"] == "deleted a.txt"
    running = await _created(seen, "slow_compute", seconds=60)
    await ask(seen.client, "tasks/cancel", taskId=running)
    await _until(seen, running, "cancelled")


async def _created(seen: Seen, tool: str, **arguments: Any) -> str:
    """Its id."""
    result = await seen.call(tool, arguments)
    created: dict[str, Any] = result.structured_content or {}
    assert created.get("resultType") == "task", f"no task, but {text_of(result)!r}"
    assert created["ttlMs"] == tasks.TTL_MS, f"its time to live is {created['ttlMs']}"
    return created["taskId"]


async def _until(seen: Seen, task: str, status: str) -> dict[str, Any]:
    with anyio.move_on_after(WAIT_S):
        while True:
            state = await ask(seen.client, "tasks/get", taskId=task)
            if state["status"] == status:
                return state
            await anyio.sleep(_POLL_S)
    raise AssertionError(f"the task did not become {status}")


async def check_skills(seen: Seen) -> None:
    """All are listed, each can be asked for, its files are those that its entry says, and folders can be read."""
    await _check_declared(seen, skills.EXTENSION)
    listed = await listed_skills(seen.client)
    names = {one["frontmatter"]["name"] for one in listed}
    assert names == {"git-workflow", "refunds", "pdf-processing"}, f"listed: {names}"
    (entry,) = (one for one in listed if one["frontmatter"]["name"] == _FOLDED)
    assert await skill(seen.client, entry["uri"]) == entry, "skills/get says something else than the list"
    for file in entry["resources"]:
        text = await text_of_file(seen.client, file["uri"])
        assert f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" == file["digest"], f"{file['uri']} differs"
        assert text in FILES.values(), f"{file['uri']} is another file"
    folder = entry["uri"].removesuffix("/SKILL.md")
    below = await ask(seen.client, "resources/directory/read", uri=folder)
    children = {child["uri"].removeprefix(f"{folder}/") for child in below["resources"]}
    assert children == {"SKILL.md", "references", "templates"}, f"the folder has {children}"


async def _check_declared(seen: Seen, extension: str) -> None:
    if seen.era == STATELESS:
        declared = (await ask(seen.client, "server/discover"))["capabilities"].get("extensions", {})
    else:
        declared = seen.client.server_capabilities.extensions or {}
    assert extension in declared, f"not declared: {sorted(declared)}"
