"""The queue of several servers: a person decides on any of them, once, and the call runs once on any of them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from goat_mcp.calls.approvals.record import DecidedBefore, Kind, Request, Status, Verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.core.errors import ToolError
from goat_mcp.gateway.approvals.queue import ApprovalQueue
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.redis.shared_state import SharedState
from tests.redis_server import redis_server
from tests.shared_states import States, shared_state

pytestmark = pytest.mark.parametrize("states", ["shared"], indirect=True)
CALL = Request(Kind.CALL, "subject", "Bash: make", "anna", session="1-2@here/principal:anna", expires_at_s=4e9)
PLAN = Request(Kind.PLAN, "plan:1", "Plan: move it", "anna")


@pytest.fixture
def stores(tmp_path: Path, states: States, monkeypatch: pytest.MonkeyPatch) -> list[ApprovalStore]:
    """Of three servers, each on a machine of its own."""
    found: list[ApprovalStore] = []
    for number in range(3):
        with monkeypatch.context() as machine:
            machine.setattr(SharedState, "machine", f"machine-{number}")
            found.append(ApprovalStore(states(tmp_path / str(number))))
    return found


def test_a_decision_on_another_server_is_seen_and_used_once(stores: list[ApprovalStore]) -> None:
    asking, deciding, later = stores
    asked = asking.add(CALL, "call-1")
    assert [one.id for one in deciding.waiting()] == [asked.id]
    deciding.decide(asked.id, Verdict(True), "page")

    assert asking.find(asked.id).status is Status.APPROVED
    uses = [asking.use(asked.id, "call-1"), later.use(asked.id, "call-2")]
    assert [one is not None for one in uses] == [True, False]


def test_of_many_who_decide_at_the_same_time_one_is_first(stores: list[ApprovalStore]) -> None:
    first: list[str] = []
    late: list[str] = []

    def decide(store: ApprovalStore, id: str, by: str) -> None:
        try:
            store.decide(id, Verdict(True), by)
            first.append(id)
        except DecidedBefore:
            late.append(id)

    ids = [stores[0].add(CALL).id for _ in range(20)]
    for id in ids:
        threads = [threading.Thread(target=decide, args=(one, id, str(n))) for n, one in enumerate(stores)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(first) == sorted(ids)
    assert len(late) == 2 * len(ids)


def test_a_call_that_another_server_waits_for_is_not_taken_over_and_one_that_was_left_is(
    stores: list[ApprovalStore],
) -> None:
    one, other, _ = stores
    asked = one.add(CALL, "call-1")
    assert other.attend(CALL.subject, CALL.principal, "call-2") is None

    one.leave(asked.id)
    found = other.attend(CALL.subject, CALL.principal, "call-2")
    assert found is not None and found.id == asked.id


def test_what_lies_on_another_machine_is_neither_withdrawn_nor_decided_here(stores: list[ApprovalStore]) -> None:
    one, other, _ = stores
    one.sync(Kind.PLAN, [PLAN], 1.0)
    other.sync(Kind.PLAN, [], 2e10)

    (waiting,) = other.waiting()
    assert waiting.status is Status.WAITING
    one.sync(Kind.PLAN, [], 2e10)
    assert other.waiting() == []


class _Plans:
    kind = Kind.PLAN

    def waiting(self) -> list[Request]:
        return []

    async def approve(self, approval: object, verdict: Verdict) -> str:
        return "done"

    deny = approve


@pytest.mark.anyio
async def test_a_plan_is_decided_where_it_lies(stores: list[ApprovalStore], tmp_path: Path, states: States) -> None:
    one, other, _ = stores
    one.sync(Kind.PLAN, [PLAN], 1.0)
    queue = ApprovalQueue(states(tmp_path), other, lambda: [_Plans()])
    (waiting,) = other.waiting()

    with pytest.raises(ToolError, match="on the machine machine-0"):
        await queue.approve(waiting.id, by="page")
    assert other.waiting() == [waiting]


def test_a_session_that_every_server_serves_has_its_grants_on_each(stores: list[ApprovalStore]) -> None:
    one, other, _ = stores
    assert one.processes.of_session("principal:anna") == other.processes.of_session("principal:anna")
    assert one.processes.of_session("session:1") != other.processes.of_session("session:1")


def test_an_approval_is_not_used_again_after_redis_was_set_back(tmp_path: Path, states: States) -> None:
    """Nor does a grant count that may have been taken back since."""
    del states  # this Redis is one of its own
    with redis_server(tmp_path) as server:
        store = ApprovalStore(StateDirectory(tmp_path / "1", shared_state(server, "p")))
        once, granted, open = (store.add(CALL, f"call-{n}") for n in range(3))
        store.decide(once.id, Verdict(True), "page")
        store.decide(granted.id, Verdict(True, "session", ("Bash(make)",)), "page")
        assert store.use(granted.id, "call-1") is not None
        server.ask("SAVE")
        assert store.use(once.id, "call-0") is not None
        server.set_back()
        other = ApprovalStore(StateDirectory(tmp_path / "2", shared_state(server, "p")))

        assert other.use(once.id, "call-9") is None
        assert store.find(once.id).status is Status.EXPIRED
        assert other.granted("anna", CALL.session) == []
        assert [one.id for one in store.waiting()] == [open.id]
        assert store.decide(open.id, Verdict(True), "page").status is Status.APPROVED
