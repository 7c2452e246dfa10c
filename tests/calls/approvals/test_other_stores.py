"""What waits in a store of its own, and its records in the queue."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from goat_mcp.calls.approvals.record import DecidedBefore, Kind, Request, Status, Verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from tests.shared_states import States

PLAN = Request(Kind.PLAN, "plan:1", "Plan: move it", "local")


@pytest.fixture
def store(tmp_path: Path, states: States) -> ApprovalStore:
    return ApprovalStore(states(tmp_path))


def synced(store: ApprovalStore, *requests: Request, seen_at_s: float = 0.0) -> list[str]:
    store.sync(Kind.PLAN, requests, seen_at_s or time.time())
    return [found.id for found in store.waiting()]


def test_what_waits_gets_one_record_until_it_is_gone(store: ApprovalStore) -> None:
    first = synced(store, PLAN)

    assert synced(store, PLAN) == first and len(first) == 1
    assert synced(store) == [] and store.find(first[0]).status is Status.WITHDRAWN


def test_a_look_from_before_it_came_does_not_withdraw_it(store: ApprovalStore) -> None:
    looked_at_s = time.time()
    came = synced(store, PLAN)

    assert synced(store, seen_at_s=looked_at_s) == came


def test_what_is_being_done_is_not_asked_about_again(store: ApprovalStore) -> None:
    (id,) = synced(store, PLAN)
    store.decide(id, Verdict(True), "page")

    assert synced(store, PLAN) == []


def test_what_a_killed_process_had_approved_and_not_done_waits_again(
    store: ApprovalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (id,) = synced(store, PLAN)
    with monkeypatch.context() as other:
        other.setattr("goat_mcp.processes.process_table.this_process", lambda: "999999999-1")
        store.decide(id, Verdict(True), "page")

    (again,) = synced(store, PLAN)
    assert again != id


def test_a_look_from_before_it_was_done_does_not_ask_again(store: ApprovalStore) -> None:
    (id,) = synced(store, PLAN)
    looked_at_s = time.time()
    store.decide(id, Verdict(True), "page")
    store.finish(id)

    assert synced(store, PLAN, seen_at_s=looked_at_s) == []
    assert len(synced(store, PLAN)) == 1  # it waits there again


def test_what_was_denied_is_not_asked_about_again(store: ApprovalStore) -> None:
    (id,) = synced(store, PLAN)
    store.decide(id, Verdict(False), "page")

    assert synced(store, PLAN) == []


def test_a_command_that_looked_before_somebody_decided_is_too_late(store: ApprovalStore) -> None:
    looked_at_s = time.time()
    (id,) = synced(store, PLAN)
    assert store.open(PLAN, looked_at_s).id == id
    store.decide(id, Verdict(False), "page")

    with pytest.raises(DecidedBefore, match="was denied before, by page"):
        store.open(PLAN, looked_at_s)
    assert store.open(PLAN, time.time()).id != id  # a person who has seen that it still waits


def test_the_newest_record_is_found_by_the_beginning_of_its_subject(store: ApprovalStore) -> None:
    synced(store, PLAN)

    assert store.newest_of(Kind.PLAN, "plan") is not None
    assert store.newest_of(Kind.PLAN, "pla") is None and store.newest_of(Kind.CHANGE, "plan") is None
