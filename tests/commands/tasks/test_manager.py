"""Tasks by id: who may see one, how many run, and what is remembered after a restart."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import anyio
import pytest

from goat_mcp.commands.tasks import Task, TaskManager, TaskOutcome, TaskStatus
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.output_capture import OutputPart
from goat_mcp.state.directory import StateDirectory

pytestmark = pytest.mark.anyio


class Work:
    """Work that runs until it is told to end."""

    kind = "shell"

    def __init__(self, title: str = "work", output_file: Path | None = None) -> None:
        self.title = title
        self.output_file = output_file
        self.outcome: TaskOutcome | None = None
        self.seconds = 1.5
        self._ended = asyncio.Event()

    def output(self, max_chars: int, start: int) -> OutputPart:
        return OutputPart("output"[start:], 6)

    async def wait(self, timeout_s: float | None) -> bool:
        with anyio.move_on_after(timeout_s):
            await self._ended.wait()
        return self._ended.is_set()

    async def stop(self) -> None:
        self.end(TaskOutcome(TaskStatus.STOPPED, 143))

    def end(self, outcome: TaskOutcome) -> None:
        self.outcome = outcome
        self._ended.set()


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")


def restarted(state: StateDirectory, workspace: str = "/ws") -> TaskManager:
    """A manager of a later process: the records it finds name a server that is gone."""
    for path in state.folder("tasks").glob("*.json"):
        record = json.loads(path.read_text())
        path.write_text(json.dumps({**record, "server": [record["server"][0], record["server"][1] + 1]}))
    return TaskManager(state, workspace)


async def recorded(state: StateDirectory, task: Task, status: str) -> None:
    path = state.folder("tasks") / f"{task.id}.json"
    with anyio.fail_after(60):  # a thread writes it
        while not (os.path.exists(path) and f'"{status}"' in await anyio.Path(path).read_text()):  # noqa: ASYNC110,ASYNC240,PTH110
            await asyncio.sleep(0.01)


async def test_ids_cannot_be_guessed_and_are_bound_to_their_principal(state: StateDirectory) -> None:
    manager = TaskManager(state)
    tasks = [await manager.adopt(Work(), principal="a") for _ in range(3)]

    assert {len(task.id) for task in tasks} == {32} and len({task.id for task in tasks}) == 3  # 160 bits in base 32
    assert await manager.find(tasks[0].id, "a") is tasks[0]
    with pytest.raises(ToolError) as unknown:
        await manager.find(tasks[0].id, "b")
    assert unknown.value.code is ErrorCode.TASK_UNKNOWN
    assert tasks[0].id not in unknown.value.suggestion
    await manager.stop_all()


async def test_there_is_room_again_when_a_task_has_ended(state: StateDirectory) -> None:
    manager = TaskManager(state, max_running=1)
    first = await manager.adopt(Work(), principal="a")

    with pytest.raises(ToolError) as full:
        await manager.adopt(Work(), principal="b")
    await manager.stop(first)
    await manager.adopt(Work(), principal="b")

    assert full.value.code is ErrorCode.BUSY
    await manager.stop_all()


async def test_stopping_all_leaves_nothing_running(state: StateDirectory) -> None:
    manager = TaskManager(state)
    tasks = [await manager.adopt(Work(), principal="a") for _ in range(5)]

    await manager.stop_all()

    assert [task.status for task in tasks] == [TaskStatus.STOPPED] * 5


async def test_a_running_task_of_a_server_that_is_gone_is_orphaned_and_its_output_still_there(
    state: StateDirectory, tmp_path: Path
) -> None:
    output = tmp_path / "out.txt"
    await anyio.Path(output).write_text("so far\n")
    manager = TaskManager(state, "/ws")
    task = await manager.adopt(Work("npm start", output), principal="a")
    await recorded(state, task, "running")

    found = await restarted(state).find(task.id, "a")

    assert (found.status, found.work.title, found.work.output_file) == (TaskStatus.ORPHANED, "npm start", output)
    assert found.work.output(1_000, 0).text == "so far"
    await manager.stop_all()


async def test_an_ended_task_keeps_its_outcome_over_a_restart(state: StateDirectory) -> None:
    manager, work = TaskManager(state, "/ws"), Work()
    task = await manager.adopt(work, principal="a")
    work.end(TaskOutcome(TaskStatus.FAILED, 3, "why"))
    await recorded(state, task, "failed")

    found = await restarted(state).find(task.id, "a")

    assert found.work.outcome == TaskOutcome(TaskStatus.FAILED, 3, "why")


@pytest.mark.parametrize(("principal", "workspace"), [("b", "/ws"), ("a", "/other")])
async def test_records_of_others_and_of_other_workspaces_are_unknown(
    state: StateDirectory, principal: str, workspace: str
) -> None:
    manager = TaskManager(state, "/ws")
    task = await manager.adopt(Work(), principal="a")
    await recorded(state, task, "running")

    with pytest.raises(ToolError):
        await restarted(state, workspace).find(task.id, principal)

    await manager.stop_all()


async def test_a_task_of_another_server_that_still_runs_is_not_called_orphaned(state: StateDirectory) -> None:
    manager = TaskManager(state, "/ws")
    task = await manager.adopt(Work(), principal="a")
    await recorded(state, task, "running")

    with pytest.raises(ToolError):
        await TaskManager(state, "/ws").find(task.id, "a")

    await manager.stop_all()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"id": 1}', "null", "\x00"])
async def test_a_corrupt_record_is_set_aside_and_the_task_unknown(state: StateDirectory, damage: str) -> None:
    manager = TaskManager(state, "/ws")
    task = await manager.adopt(Work(), principal="a")
    await recorded(state, task, "running")
    path = state.folder("tasks") / f"{task.id}.json"
    await anyio.Path(path).write_text(damage)

    with pytest.raises(ToolError):
        await TaskManager(state, "/ws").find(task.id, "a")

    assert await anyio.Path(path.with_name(f"{path.name}.corrupt")).exists()
    await manager.stop_all()


async def test_ended_tasks_are_known_for_an_hour(state: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    manager, work = TaskManager(state), Work()
    task = await manager.adopt(work, principal="a")
    await recorded(state, task, "running")
    work.end(TaskOutcome(TaskStatus.COMPLETED, 0))
    await recorded(state, task, "completed")
    now_s = time.time()

    monkeypatch.setattr(time, "time", lambda: now_s + 3590)
    assert await manager.find(task.id, "a") is task
    monkeypatch.setattr(time, "time", lambda: now_s + 3610)
    with pytest.raises(ToolError):
        await manager.find(task.id, "a")


@pytest.mark.posix_only("file modes")
async def test_records_are_private(state: StateDirectory) -> None:
    manager = TaskManager(state)
    task = await manager.adopt(Work(), principal="a")
    await recorded(state, task, "running")

    found = await anyio.Path(state.folder("tasks") / f"{task.id}.json").stat()

    assert found.st_mode & 0o777 == 0o600
    assert [path.name for path in state.folder("tasks").iterdir()] == [f"{task.id}.json"]
    await manager.stop_all()
