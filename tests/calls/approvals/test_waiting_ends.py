"""A call that waits for a person always ends: when the question expires, and whatever happens to the queue's file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import anyio
import pytest

from goat_mcp.calls.approvals.record import Approval, Status
from goat_mcp.calls.approvals.store import BY_ID, FILE_NAME
from goat_mcp.core.errors import ErrorCode
from goat_mcp.state.directory import StateDirectory
from tests.calls.approvals.test_asking import Desk, Person, while_it_waits, write

pytestmark = pytest.mark.anyio


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")


async def nothing_is_heard(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
    """A client that asked for progress."""


async def test_a_call_ends_when_its_question_expires(state: StateDirectory) -> None:
    desk = Desk(state, expires_s=1)

    with anyio.fail_after(10):
        outcome = await desk.settled(write("/ws/a"))

    assert outcome.startswith(ErrorCode.PERMISSION) and "is expired" in outcome
    assert [one.status for one in desk.store.newest_first()] == [Status.EXPIRED]


async def test_a_form_is_withdrawn_when_the_question_expires_and_is_not_shown_again(state: StateDirectory) -> None:
    desk, person = Desk(state, expires_s=1), Person()

    with anyio.fail_after(10):
        outcome = await desk.settled(write("/ws/a"), person)

    assert outcome.startswith(ErrorCode.PERMISSION) and person.withdrawn
    assert [one.status for one in desk.store.newest_first()] == [Status.EXPIRED]


@pytest.mark.parametrize("client", ["without forms", "wants progress", "with forms"])
async def test_a_call_ends_with_a_clear_error_if_its_record_is_deleted(state: StateDirectory, client: str) -> None:
    desk = Desk(state)
    person = Person() if client == "with forms" else None
    members = {"wants_progress": True, "progress": nothing_is_heard} if client == "wants progress" else {}
    outcome = ""

    async def run() -> None:
        nonlocal outcome
        outcome = await desk.settled(write("/ws/a"), person, **members)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await desk.one_waits()
            for suffix in ("", "-wal", "-shm"):
                (state.path / f"{FILE_NAME}{suffix}").unlink(missing_ok=True)

    assert outcome.startswith(ErrorCode.PERMISSION) and "is no longer in their queue" in outcome


async def test_who_only_looks_does_not_wait_for_a_program_that_writes(state: StateDirectory) -> None:
    desk = Desk(state, wait_s=0.0)
    await desk.settled(write("/ws/a"))
    (waiting,) = desk.store.waiting()
    other = sqlite3.connect(state.path / FILE_NAME, isolation_level=None)

    try:
        other.execute("BEGIN IMMEDIATE")

        assert desk.store.find(waiting.id).status is Status.WAITING
        assert len(desk.store.waiting()) == 1
    finally:
        other.close()


async def test_a_decision_is_seen_even_if_the_files_look_the_same(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goat_mcp.calls.approvals.asking.READ_AGAIN_S", 0.3)
    desk, elsewhere = Desk(state), Desk(state)
    monkeypatch.setattr(desk.store, "mark", lambda: (1, 1, 1, 1))

    async def approve_later(found: Approval) -> None:
        await anyio.sleep(0.1)  # the record has been read once
        await elsewhere.queue.approve(found.id, by="terminal")

    assert await while_it_waits(desk, write("/ws/a"), approve_later) == "mode default, allowed once by the user"


async def test_a_record_is_found_by_the_beginning_of_its_id_without_reading_all_others(state: StateDirectory) -> None:
    desk = Desk(state, wait_s=0.0)
    for number in range(20):
        await desk.settled(write(f"/ws/{number}"))
    connection = sqlite3.connect(state.path / FILE_NAME)
    plan = connection.execute(f"EXPLAIN QUERY PLAN SELECT * FROM approvals WHERE {BY_ID}", ("a", "b")).fetchall()
    connection.close()

    found = [desk.store.find(one.id[:16].upper()).id for one in desk.store.waiting()]

    assert found == [one.id for one in desk.store.waiting()] and len(found) == 20
    assert plan[0][-1].startswith("SEARCH approvals USING")
