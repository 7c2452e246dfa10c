"""Plans on one machine and on servers that share a Redis: presented on one, decided from another, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.plans import PlanStatus, PlanStore, Presenter, all_plans, find_plan
from tests.redis_server import redis_server
from tests.shared_states import States, shared_state

ANNA = Presenter("anna", "principal:anna:claude")


@pytest.fixture
def two(tmp_path: Path, states: States, request: pytest.FixtureRequest) -> tuple[StateDirectory, StateDirectory]:
    """Two processes of one machine, or two machines."""
    one = states(tmp_path / "one")
    return one, states(tmp_path / ("one" if one.shared is None else "two"))


def follow(state: StateDirectory) -> None:
    """What an event has a server do."""
    if state.shared is not None:
        state.shared.look(state.path, "plans")


def test_a_plan_of_one_is_read_and_decided_at_the_other(two: tuple[StateDirectory, StateDirectory]) -> None:
    one, other = two
    presented = PlanStore(one, "scope").save("# Build it\n", ANNA)

    found = find_plan(other, presented.name)

    assert found is not None
    store, plan = found
    assert store.text(plan) == "# Build it\n"
    assert Path(plan.file_path).is_relative_to(other.path)
    store.decide(plan, PlanStatus.APPROVED)
    follow(one)
    here = PlanStore(one, "scope").find(presented.name, "anna")
    assert here is not None and here.status is PlanStatus.APPROVED
    assert PlanStore(one, "scope").find(presented.name, "bert") is None


def test_a_plan_that_its_session_has_gone_on_by_is_decided_no_more(two: tuple[StateDirectory, StateDirectory]) -> None:
    one, other = two
    presented = PlanStore(one, "scope").save("# Build it\n", ANNA)
    (seen,) = [plan for _, plan in all_plans(other)]
    PlanStore(one, "scope").decide(presented, PlanStatus.USED)

    late = PlanStore(other, "scope").decide(seen, PlanStatus.REJECTED, feedback="no")

    assert late.status is PlanStatus.USED


def test_both_present_and_none_is_lost(two: tuple[StateDirectory, StateDirectory]) -> None:
    names = {PlanStore(state, "scope").save(f"# Plan {number}\n", ANNA).name for number, state in enumerate(two * 3)}

    for state in two:
        assert {plan.name for _, plan in all_plans(state)} == names


def test_without_the_shared_state_a_plan_is_not_presented(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        shared = shared_state(server, "plans")
        state = StateDirectory(tmp_path / "state", shared)
        server.stop()

        with pytest.raises(ToolError) as refused:
            PlanStore(state, "scope").save("# Build it\n", ANNA)

        assert refused.value.code == ErrorCode.IO
        assert PlanStore(state, "scope").newest_first("anna") == []
        server.start()
        assert PlanStore(state, "scope").save("# Build it\n", ANNA).status is PlanStatus.WAITING
        shared.connection.close_here()
