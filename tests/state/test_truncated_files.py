"""What a killed process or a full disk has cut short is never a crash: it is set aside, and there is no answer from it.

R-CRASH-1, for what has no test of its own: trust.json is in tests/state/trust, stored catalogs in tests/upstreams.
"""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.commands.tasks.records import TaskRecords
from goat_mcp.commands.tasks.task import Task, TaskOutcome, TaskStatus
from goat_mcp.core import platform
from goat_mcp.core.context import ToolContext
from goat_mcp.settings.settings import Settings
from goat_mcp.settings.view import ConfigView
from goat_mcp.state.database import Database
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.plans import PlanStatus, PlanStore, Presenter
from goat_mcp.state.private_file import write_private
from goat_mcp.state.session_settings import DatabaseConfigStore, SessionSettings
from goat_mcp.state.todos import DatabaseTodoStore

pytestmark = pytest.mark.anyio

DATABASE_CUTS = 60


class Log:
    """The lines that were logged."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, event: str, **fields: Any) -> None:
        self.lines.append(event)


ADA = Presenter("ada", "session")


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")


def test_a_plans_record_cut_at_any_byte_is_set_aside_and_no_approval(state: StateDirectory) -> None:
    log = Log()
    store = PlanStore(state, "scope", log)
    plan = store.decide(store.save("# A plan\n", ADA), PlanStatus.APPROVED)
    path = store.folder / f"{plan.name}.json"
    whole = path.read_bytes()

    for length in range(len(whole)):
        path.write_bytes(whole[:length])

        assert store.find(plan.name, "ada") is None, length
        assert store.newest_first("ada") == []
        assert (path.exists(), path.with_name(f"{path.name}.corrupt").read_bytes()) == (False, whole[:length])

    assert log.lines == ["damaged state file set aside"] * len(whole)
    path.write_bytes(whole)
    assert store.find(plan.name, "ada") == plan


def test_an_approved_plan_whose_text_was_cut_is_not_the_one_that_was_approved(state: StateDirectory) -> None:
    store = PlanStore(state, "scope")
    plan = store.decide(store.save("# A plan\n\nDelete nothing.\n", ADA), PlanStatus.APPROVED)
    text = Path(plan.file_path).read_bytes()

    for length in range(len(text)):
        Path(plan.file_path).write_bytes(text[:length])

        assert store.text(plan) == text[:length].decode()


class Done:
    """A background work that has ended."""

    kind, title, seconds, output_file = "shell", "sleep 1", 1.0, None
    outcome = TaskOutcome(TaskStatus.COMPLETED, 0)


def test_a_tasks_record_cut_at_any_byte_is_set_aside_and_the_task_unknown(state: StateDirectory) -> None:
    log = Log()
    records = TaskRecords(state, lambda: "/ws", log)
    task = Task("a" * 32, "one", Done())  # pyright: ignore[reportArgumentType]  # what a record is made of
    records.write(task)
    path = state.folder("tasks") / f"{task.id}.json"
    whole = path.read_bytes()
    assert records.find(task.id, "one") is not None

    for length in range(len(whole)):
        path.write_bytes(whole[:length])

        assert records.find(task.id, "one") is None, length
        assert (path.exists(), path.with_name(f"{path.name}.corrupt").read_bytes()) == (False, whole[:length])
    assert log.lines == ["damaged state file set aside"] * len(whole)


async def test_the_database_cut_anywhere_is_answered_from_or_set_aside_with_a_line_in_the_log(
    state: StateDirectory,
) -> None:
    todo = {"content": "x" * 500, "status": "pending", "activeForm": "y"}
    database = Database(state, Log())
    for owner in range(30):
        await DatabaseTodoStore(database).replace(f"owner-{owner}", [todo])
    database.close()
    path = state.path / "state.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    whole = path.read_bytes()
    assert len(whole) > 4096 * 4

    for length in sorted({*range(0, len(whole), len(whole) // DATABASE_CUTS), 1, 99, 100, 4095, 4096, len(whole) - 1}):
        for left in await anyio.to_thread.run_sync(lambda: list(state.path.glob("state.db*"))):
            left.unlink()
        path.write_bytes(whole[:length])
        log = Log()
        cut = Database(state, log)
        store = DatabaseTodoStore(cut)

        found = await store.read("owner-29")
        await store.replace("owner-29", [todo])

        assert found in ([], [todo]), length
        assert await store.read("owner-29") == [todo]
        aside = [one for one in state.path.glob("state.db.corrupt-*") if not one.name.endswith(("-wal", "-shm"))]
        assert len(aside) == len(log.lines) <= 1
        cut.close()


async def test_a_stored_setting_that_is_no_json_leaves_the_session_with_the_others(state: StateDirectory) -> None:
    log = Log()
    database = Database(state, log)
    store = DatabaseConfigStore(database)
    await store.write("principal:one", "output.max_chars", 5000)
    await store.write("principal:one", "log_level", "debug")
    await database.write(lambda c: c.execute("UPDATE session_settings SET value = '{' WHERE key = 'log_level'"))

    changed = await SessionSettings(store, ConfigView(Settings()).check, log).of(
        ToolContext(call_id="c", session_key="principal:one")
    )

    assert changed == {"output.max_chars": 5000}
    assert log.lines == ["a stored setting of a session is left out"]


async def test_a_todo_list_that_is_no_json_is_an_empty_one(state: StateDirectory) -> None:
    log = Log()
    database = Database(state, log)
    store = DatabaseTodoStore(database)
    await store.replace("one", [{"content": "x", "status": "pending", "activeForm": "y"}])
    await database.write(lambda c: c.execute("UPDATE todos SET items = '[{'"))

    assert await store.read("one") == []
    assert await store.replace("one", []) == []


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_private(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            write_private(path, b"new")
    after_failure = (path.read_bytes(), sorted(found.name for found in tmp_path.iterdir()))
    write_private(path, json.dumps("new").encode())

    assert after_failure == (b"old", ["file"])
    assert path.read_bytes() == b'"new"'
    assert not platform.HAS_FILE_MODES or path.stat().st_mode & 0o777 == 0o600
