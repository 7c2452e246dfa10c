"""`plan`, `review`, `lock` and `trust` decide through the queue: who decided is shown, and is named to the next one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner, Result

from goat_mcp.cli.main import app
from goat_mcp.gateway.approvals.user_queue import UserQueue
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.trust.store import TrustStore
from goat_mcp.upstreams.pinning.pin_review import agreement, waiting_in
from tests.gateway.approvals.test_sources import NEW, OLD, lock, present, serve, stage

pytestmark = pytest.mark.usefixtures("person")


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), prog_name="goat-mcp", standalone_mode=False)


def decided() -> list[dict[str, Any]]:
    return json.loads(run("approvals", "--all", "--json").output)["decided"]


def decide_on_the_page(approved: bool = True) -> None:
    async def decide() -> None:
        queue = UserQueue(StateDirectory.default()).queue
        (found,) = await queue.waiting()
        await (queue.approve(found.id, by="page") if approved else queue.deny(found.id, by="page"))

    anyio.run(decide)


def test_a_plan_approved_by_its_command_is_in_the_record(state: StateDirectory) -> None:
    _, plan = present(state)

    done = run("plan", "approve", plan.name)

    assert done.output == f"{plan.name} approved\n"
    (record,) = decided()
    assert (record["kind"], record["status"], record["decided_by"]) == ("plan", "approved", "terminal")
    assert record["result"] == "done"


def test_a_plan_that_was_rejected_elsewhere_is_not_approved(state: StateDirectory) -> None:
    _, plan = present(state)
    decide_on_the_page(approved=False)

    done = run("plan", "approve", plan.name)

    assert "was denied before, by page, " in str(done.exception)


def test_a_change_applied_elsewhere_names_who_did(state: StateDirectory, tmp_path: Path) -> None:
    staged = stage(state, tmp_path / "ws" / "new.txt", "two\n")
    decide_on_the_page()

    done = run("review", "reject", staged.id)

    assert done.return_value == 5 and "refused" in done.output and "was approved before, by page, " in done.output
    assert staged.path.read_text() == "two\n"


def test_a_change_rejected_by_its_command_is_in_the_record(
    state: StateDirectory,
    tmp_path: Path,
) -> None:
    staged = stage(state, tmp_path / "ws" / "new.txt", "two\n")

    done = run("review", "reject", staged.id, "--json")

    assert json.loads(done.output) == [{"id": staged.id, "outcome": "rejected", "message": str(staged.path)}]
    (record,) = decided()
    assert (record["kind"], record["status"], record["decided_by"]) == ("change", "denied", "terminal")


def test_a_definition_approved_by_its_command_is_in_the_record(state: StateDirectory) -> None:
    pins = lock(state, {"t": NEW}, {"t": OLD})
    anyio.run(UserQueue(state).queue.waiting)
    agreed = agreement(waiting_in(pins.content()))

    done = run("lock", "approve", "x", "--yes", agreed, "--json")

    assert json.loads(done.output) == {"approved": ["mcp__x__t"]}
    (record,) = decided()
    assert (record["kind"], record["status"], record["decided_by"]) == ("definition", "approved", "terminal")
    assert json.loads(run("approvals", "--json").output)["waiting"] == []


def test_a_definition_that_was_denied_can_still_be_approved_by_its_command(state: StateDirectory) -> None:
    pins = lock(state, {"t": NEW}, {"t": OLD})
    decide_on_the_page(approved=False)

    done = run("lock", "approve", "x", "--yes", agreement(waiting_in(pins.content())))

    assert done.exception is None and waiting_in(pins.content()) == []
    assert [record["status"] for record in decided()] == ["approved", "denied"]


def test_a_project_trusted_by_its_command_is_in_the_record_and_revoking_it_asks_nobody(
    state: StateDirectory,
    tmp_path: Path,
) -> None:
    file = tmp_path / "ws" / "goat-mcp.yaml"
    file.write_text("mode: acceptEdits\n")
    serve(state, tmp_path / "ws")
    sha256 = json.loads(run("trust", ".", "--json").output)["sha256"]

    run("trust", ".", "--yes", sha256)
    trusted = TrustStore(state).of(file)
    run("trust", ".", "--revoke")

    assert trusted is not None and trusted.sha256 == sha256
    assert [(one["kind"], one["status"], one["decided_by"]) for one in decided()] == [
        ("project", "denied", "terminal"),
        ("project", "approved", "terminal"),
    ]
    assert json.loads(run("approvals", "--json").output)["waiting"] == []
    assert run("trust", ".", "--yes", sha256).exception is None and TrustStore(state).of(file) is not None
