"""Going on with an agent that has ended: by id or name, after a restart, and only for who started it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.agents import records
from goat_mcp.agents.records import AgentFacts, AgentRecord, AgentRecords
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.model import ModelMessage
from goat_mcp.core.result import text_block
from goat_mcp.state.directory import StateDirectory
from tests.agents.scripted import Ground, ScriptedModel, ground, results_in, says, use
from tests.agents.test_background import ended, id_of, pid_of, sleeper

pytestmark = pytest.mark.anyio


def texts(model: ScriptedModel, turn: int) -> list[tuple[str, str]]:
    return [(message.role, str(message.content[0].get("text"))) for message in model.requests[turn].messages]


async def test_an_agent_goes_on_where_it_ended_by_id_and_by_name(tmp_path: Path) -> None:
    model = ScriptedModel([says("one"), says("two"), says("three")])
    async with ground(tmp_path, model) as on:
        first = await on.agent("Count.", name="counter")
        second = await on.agent("Next.", resume=id_of(first))
        third = await on.agent("Next.", resume="counter")

    assert (id_of(second), id_of(third)) == (id_of(first), id_of(first))
    assert third.text.splitlines()[0] == "three"
    assert texts(model, 2) == [
        ("user", "Count."),
        ("assistant", "one"),
        ("user", "Next."),
        ("assistant", "two"),
        ("user", "Next."),
    ]


async def test_an_agent_is_resumed_by_a_later_process_with_its_type(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel([says("", use("Glob", {"pattern": "*"}, "g")), says("one")])) as on:
        first = await on.agent("Count.", subagent_type="explorer", name="counter")
    later = ScriptedModel([says("two")])
    async with ground(tmp_path, later) as on:
        second = await on.agent("Next.", resume="counter")

    assert second.text.splitlines()[0] == "two"
    assert id_of(second) == id_of(first)
    assert results_in(later.requests[0].messages[2]) == ["No files found"]
    assert "Write" not in {tool.name for tool in later.requests[0].tools}


async def test_what_an_agent_has_read_it_still_knows_when_it_is_resumed(tmp_path: Path) -> None:
    edit = use("Edit", {"file_path": "@a.txt", "old_string": "a", "new_string": "b"}, "e")
    model = ScriptedModel([says("", use("Read", {"file_path": "@a.txt"}, "r")), says("read"), says("", edit)])
    async with ground(tmp_path, model) as on:
        (on.workspace / "a.txt").write_text("a\n")
        first = await on.agent()
        await on.agent(resume=id_of(first))

        assert (on.workspace / "a.txt").read_text() == "b\n"


async def test_a_resumed_agent_has_no_more_rights_than_who_resumes_it(tmp_path: Path) -> None:
    write = use("Write", {"file_path": "@x.txt", "content": "x"}, "w")
    model = ScriptedModel([says("one"), says("", write)])
    async with ground(tmp_path, model) as on:
        first = await on.agent()
        await on.agent(resume=id_of(first), mode="plan")

        assert not (on.workspace / "x.txt").exists()


async def test_an_agent_of_another_principal_is_as_unknown_as_a_made_up_one(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        first = await on.agent(name="mine")
        eve = replace(on.ctx, principal="eve")
        by_id, by_name = [await on.agent(resume=known, ctx=eve) for known in (id_of(first), "mine")]
        unknown = await on.agent(resume="nobody")

    assert (by_id.error_code, by_name.error_code, unknown.error_code) == ("E_TASK_UNKNOWN",) * 3
    assert "No agent here can be resumed" in by_id.text
    assert f"{id_of(first)} (mine)" in unknown.text


async def test_a_running_agent_is_not_resumed(tmp_path: Path) -> None:
    go = anyio.Event()
    async with ground(tmp_path, ScriptedModel([go, says("ok")])) as on:
        first = await on.agent(run_in_background=True, name="busy")
        by_id, by_name = [await on.agent(resume=known) for known in (id_of(first), "busy")]
        go.set()
        await ended(on, id_of(first))

    assert (by_id.error_code, by_name.error_code) == ("E_BUSY", "E_BUSY")


async def test_an_agent_that_was_stopped_can_be_resumed(tmp_path: Path) -> None:
    go = anyio.Event()
    model = ScriptedModel([says("Half.", use("Glob", {"pattern": "*"}, "g")), go, says("never"), says("whole")])
    async with ground(tmp_path, model) as on:
        first = await on.agent(run_in_background=True)
        with anyio.fail_after(60):
            while len(model.requests) < 2:  # noqa: ASYNC110 - the second question is what we wait for
                await anyio.sleep(0.01)
        await on.call("TaskStop", {"task_id": id_of(first)})
        model.steps = [says("whole")]
        again = await on.agent("Go on.", resume=id_of(first))

    assert again.text.splitlines()[0] == "whole"


async def killed(on: Ground, model: ScriptedModel, **fields: Any) -> str:
    """An agent whose server is gone while its second question is asked; its id. All it left is on disk."""
    started = await on.agent("Count.", run_in_background=True, **fields)
    with anyio.fail_after(60):
        while len(model.requests) < 2 or not tool_results_on_disk(on):  # noqa: ASYNC110 - the disk gives no event
            await anyio.sleep(0.01)
    shutil.copytree(on.gateway.state.path, on.workspace.parent / "left" / "state")
    return id_of(started)


def tool_results_on_disk(on: Ground) -> bool:
    return any("No files found" in path.read_text() for path in (on.gateway.state.path / "agents").rglob("*.jsonl"))


@pytest.mark.parametrize("by_name", [False, True])
async def test_an_agent_whose_server_was_killed_goes_on_from_its_last_finished_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_name: bool
) -> None:
    monkeypatch.setattr(records, "PAUSE_S", 0.01)
    model = ScriptedModel([says("", use("Glob", {"pattern": "*"}, "g")), anyio.Event()])
    async with ground(tmp_path, model) as on:
        first = await killed(on, model, name="counter", subagent_type="explorer")
        orphan_of_a_dead_process(tmp_path / "left/state")
        later = ScriptedModel([says("two")])
        async with ground(tmp_path / "left", later, workspace=[str(on.workspace)]) as after:
            said = await ended(after, first)
            resumed = await after.agent("Next.", resume="counter" if by_name else first)

    assert said.text.startswith(f"Task {first}: orphaned")
    assert resumed.text.splitlines()[0] == "two"
    assert id_of(resumed) == first
    (asked,) = later.requests
    assert results_in(asked.messages[2]) == ["No files found"]
    assert "Write" not in {tool.name for tool in asked.tools}


def orphan_of_a_dead_process(state: Path) -> None:
    for path in (state / "tasks").rglob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "server": [2**22 + 1, 1]}))


async def test_an_agent_that_runs_in_another_process_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "PAUSE_S", 0.01)
    model = ScriptedModel([says("", use("Glob", {"pattern": "*"}, "g")), anyio.Event()])
    async with ground(tmp_path, model) as on:
        first = await killed(on, model, name="counter")
        async with ground(tmp_path / "left", ScriptedModel(), workspace=[str(on.workspace)]) as after:
            refused = [await after.agent("Next.", resume=known) for known in (first, "counter")]

    assert [one.error_code for one in refused] == ["E_BUSY", "E_BUSY"]


async def test_an_agent_that_was_ended_in_its_first_tool_call_knows_of_it(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        model = ScriptedModel([says("", sleeper(on)), says("whole")])
        on.use(model)
        first = await on.agent(run_in_background=True)
        await pid_of(on)
        await on.call("TaskStop", {"task_id": id_of(first)})
        again = await on.agent("Go on.", resume=id_of(first))

    assert again.text.splitlines()[0] == "whole"
    assert results_in(model.requests[1].messages[2]) == [
        "you were ended while this ran; look at what came of it before you repeat it"
    ]


async def test_an_agent_that_was_stopped_before_its_model_answered_is_to_be_started_anew(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel([anyio.Event()])) as on:
        first = await on.agent(run_in_background=True)
        await on.call("TaskStop", {"task_id": id_of(first)})
        refused = await on.agent("Go on.", resume=id_of(first))

    assert refused.error_code == "E_TASK_UNKNOWN"
    assert "only one whose model has answered can. Leave out resume to start one." in refused.text


@pytest.mark.parametrize(
    ("fields", "step"),
    [
        ({"name": "other"}, "Start a new one if it is still needed."),
        ({"resume": "counter"}, "Go on with it by resume: ID."),
    ],
    ids=["new", "resumed"],
)
async def test_the_error_of_one_that_was_stopped_says_whether_it_can_be_resumed(
    tmp_path: Path, fields: dict[str, Any], step: str
) -> None:
    async with ground(tmp_path, ScriptedModel([says("one"), anyio.Event()])) as on:
        earlier = await on.agent(name="counter")
        stopped: list[str] = []

        async def start() -> None:
            stopped.append((await on.agent(**fields)).text)

        async with anyio.create_task_group() as group:
            group.start_soon(start)
            with anyio.fail_after(60):
                while not on.gateway.services.tasks().running():  # noqa: ASYNC110 - nobody tells of a start
                    await anyio.sleep(0.01)
            await on.call("TaskStop", {"task_id": fields.get("name", id_of(earlier))})

    assert stopped[0].splitlines()[:2] == ["the agent was stopped", step.replace("ID", id_of(earlier))]


async def test_another_type_than_the_agent_has_is_refused(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        first = await on.agent(subagent_type="explorer")
        refused = await on.agent(resume=id_of(first), subagent_type="planner")

    assert refused.error_code == "E_INPUT"
    assert f"agent {id_of(first)} is of type explorer" in refused.text


@pytest.mark.parametrize("damage", ["", "{", "[]\n", '{"id": 1}\n', "null", "\x00"])
async def test_a_damaged_transcript_is_set_aside(tmp_path: Path, damage: str) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        first = await on.agent()
        (path,) = (on.gateway.state.path / "agents").rglob("*.jsonl")
        path.write_text(damage)
        result = await on.agent(resume=id_of(first))

        assert [left.suffix for left in path.parent.iterdir()] == [".corrupt"]
    assert result.error_code == "E_TASK_UNKNOWN"


async def test_a_transcript_with_a_damaged_worktree_is_set_aside(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        first = await on.agent()
        (path,) = (on.gateway.state.path / "agents").rglob("*.jsonl")
        path.write_text(path.read_text().replace('"worktree": null', '"worktree": {"top": 1}'))
        result = await on.agent(resume=id_of(first))

    assert result.error_code == "E_TASK_UNKNOWN"


async def test_a_transcript_with_a_damaged_message_is_set_aside(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        first = await on.agent()
        (path,) = (on.gateway.state.path / "agents").rglob("*.jsonl")
        path.write_text(path.read_text().replace('"role": "assistant"', '"role": "boss"'))
        result = await on.agent(resume=id_of(first))

    assert result.error_code == "E_TASK_UNKNOWN"
    assert path.with_name(f"{path.name}.corrupt").exists()


def record(number: int, *messages: ModelMessage) -> AgentRecord:
    facts = AgentFacts(id=f"a{number}", principal="p", workspace="/w", type="explorer", title="t")
    return AgentRecord(facts, messages or (ModelMessage("user", (text_block("hi"),)),))


def test_only_the_newest_transcripts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_FILES", 3)
    kept = AgentRecords(StateDirectory(tmp_path))
    for number in range(5):
        kept.write(record(number))

    assert kept.find("a4", "p", "/w").messages == record(4).messages
    with pytest.raises(ToolError) as gone:
        kept.find("a0", "p", "/w")
    assert gone.value.code is ErrorCode.TASK_UNKNOWN


def test_transcripts_are_private_and_their_workspaces_apart(tmp_path: Path) -> None:
    kept = AgentRecords(StateDirectory(tmp_path))
    kept.write(record(1))

    (path,) = tmp_path.rglob("*.jsonl")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ToolError):
        kept.find("a1", "p", "/other")


def test_a_large_transcript_loses_its_images_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_FILE_BYTES", 2_000)
    image = {"type": "image", "data": "A" * 3_000, "mimeType": "image/png"}
    results = {"type": "tool_result", "toolUseId": "t", "content": [text_block("seen"), image], "isError": False}
    kept = AgentRecords(StateDirectory(tmp_path))
    kept.write(record(1, ModelMessage("user", (results,))))
    kept.write(record(2, ModelMessage("user", (text_block("x" * 3_000),))))

    (block,) = kept.find("a1", "p", "/w").messages[0].content
    assert [inner["text"] for inner in block["content"]] == ["seen", "[an image that is no longer kept]"]
    with pytest.raises(ToolError):
        kept.find("a2", "p", "/w")
