"""`goat-mcp approvals`, `approve` and `deny`: what waits, of all servers, and the user's word on it."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from goat_mcp.calls.approvals.record import Approval, Choice, Kind, Request, Status, Verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.calls.audit.call_record import CallRecord, RecordOptions
from goat_mcp.cli.main import app
from goat_mcp.core.context import ToolContext
from goat_mcp.core.redaction import Redactor
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning
from tests.cli.terminal_session import CTRL_C, TerminalSession
from tests.quick_start import goat_command

PYTEST = Choice("session", "Allow for this session: Bash(pytest -q)", ("Bash(pytest -q)",), may_remember=True)


def call(title: str = "Bash: pytest -q", **fields: Any) -> Request:
    asked: dict[str, Any] = {
        "client": "claude-code 2.1",
        "tool": "Bash",
        "directory": "/ws",
        "arguments": (("command", "pytest -q"),),
        "risk": "critical",
        "asked_by": "mode default",
        "choices": (Choice("once", "Allow once"), PYTEST),
        "expires_at_s": time.time() + 3_030,
        **fields,
    }
    return Request(Kind.CALL, secrets.token_hex(8), title, "local", **asked)


@pytest.fixture
def store(state: StateDirectory) -> ApprovalStore:
    return ApprovalStore(state)


def run(*words: str, code: int = 0) -> str:
    result = _run(*words)
    assert result.exit_code == code or result.return_value == code, (result.output, result.exception)
    return result.output


def _run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), prog_name="goat-mcp", standalone_mode=False)


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines() if "\t" in line]


def ended(state: StateDirectory, call_id: str, error_code: str | None = None, *, has_ended: bool = True) -> None:
    """The record for people says that this call began, and perhaps how it ended."""
    record = CallRecord(state, RecordOptions(), redactor=Redactor(), warn=no_warning, pid=os.getpid())
    ctx = ToolContext(call_id=call_id)
    hashed = {"args_sha256": "0", "args_chars": 1}
    record.decided("Bash", {}, ctx, decision="allow", rule="approved", by="user", hashed=hashed)
    if has_ended:
        record.ended(ctx, error_code=error_code, duration_ms=1500.0, result_chars=3)
    record.close()


def test_what_waits_is_listed_with_its_age_and_when_it_expires(store: ApprovalStore) -> None:
    one = store.add(call(), "c1")
    store.add(call("Edit: a\x1b.py", client="", expires_at_s=0.0))

    headers, first, second = rows(run("approvals"))

    assert headers == ["id", "age", "kind", "what", "client", "risk", "expires in"]
    assert first[0] == one.short_id
    assert first[2:] == ["call", "Bash: pytest -q", "claude-code 2.1", "critical", "50 min"]
    assert second[3] == "Edit: a\\x1b.py" and second[6] == ""


def test_nothing_waits(state: StateDirectory) -> None:
    assert run("approvals") == "Nothing waits for you.\n"
    assert json.loads(run("approvals", "--all", "--json")) == {"waiting": [], "decided": []}


def test_one_is_shown_whole_with_what_can_be_chosen(store: ApprovalStore) -> None:
    diff = "\n".join(["--- a", "+++ b", *(f"+{number}" for number in range(200))])
    found = store.add(call(diff=diff), "c1")

    lines = run("approvals", found.short_id[:5]).splitlines()

    assert lines[0].startswith(f"{found.id} (call, 0 s old): expires in 50 min")
    assert "Allow Bash? (mode default)" in lines and "command: pytest -q" in lines
    assert "+199" in lines
    assert f"Approve: goat-mcp approve {found.short_id}" in lines
    assert "  --scope session: Allow for this session: Bash(pytest -q)" in lines
    assert "  --scope session --always: Always allow: Bash(pytest -q)" in lines
    assert f"Deny: goat-mcp deny {found.short_id} --reason TEXT" in lines


@pytest.mark.usefixtures("person")
def test_a_call_that_nobody_waits_for_runs_when_it_is_sent_again(store: ApprovalStore) -> None:
    found = store.add(call())

    assert run("approve", found.short_id) == (
        f"{found.short_id} Bash: pytest -q: approved (once); it runs when the client sends the call again\n"
    )


@pytest.mark.usefixtures("person")
def test_always_is_refused_for_a_scope_that_cannot_be_kept(store: ApprovalStore) -> None:
    found = store.add(call(), "c1")

    told = run("approve", found.short_id, "--scope", "once", "--always", code=5)

    assert "scope once holds for this one call only. Leave out --always." in " ".join(told.split())
    assert store.find(found.id).status is Status.WAITING


def test_one_as_json_has_everything(store: ApprovalStore) -> None:
    found = store.add(call(), "c1")

    (shown,) = json.loads(run("approvals", found.id, "--json"))

    assert (shown["id"], shown["kind"], shown["status"]) == (found.id, "call", "waiting")
    assert shown["arguments"] == {"command": "pytest -q"} and shown["waits"] is True
    assert shown["choices"][1]["rules"] == ["Bash(pytest -q)"]


@pytest.mark.usefixtures("person")
def test_a_person_approves_with_a_scope(store: ApprovalStore) -> None:
    found = store.add(call(), "c1")

    told = run("approve", found.short_id, "--scope", "session")

    decided = store.find(found.id)
    assert told == f"{found.short_id} Bash: pytest -q: approved (session); it runs now\n"
    assert (decided.status, decided.decided_by) == (Status.APPROVED, "terminal")
    assert decided.verdict == Verdict(True, "session", ("Bash(pytest -q)",))


@pytest.mark.usefixtures("person")
def test_several_are_decided_and_one_that_was_decided_before_says_by_whom(store: ApprovalStore) -> None:
    one, other = store.add(call(), "c1"), store.add(call(), "c2")
    store.decide(one.id, Verdict(False), "page")

    told = json.loads(run("approve", one.short_id, other.short_id, "nope", "--json", code=5))

    assert [(each["id"], each["outcome"]) for each in told] == [
        (one.short_id, "refused"),
        (other.short_id, "approved"),
        ("nope", "refused"),
    ]
    assert told[0]["decided_by"] == "page" and "was denied before, by page" in told[0]["message"]
    assert store.find(one.id).status is Status.DENIED


@pytest.mark.usefixtures("person")
def test_a_scope_that_is_not_offered_is_refused_and_it_waits_on(store: ApprovalStore) -> None:
    found = store.add(call(choices=(Choice("once", "Allow once"),)), "c1")

    told = run("approve", found.short_id, "--scope", "session", code=5)

    assert "scope 'session' is not offered here" in told
    assert store.find(found.id).status is Status.WAITING


def test_a_denial_needs_no_terminal_and_carries_its_reason(store: ApprovalStore) -> None:
    found = store.add(call(), "c1")

    told = run("deny", found.short_id, "--reason", "use make test")

    assert told == f"{found.short_id} Bash: pytest -q: denied\n"
    assert store.find(found.id).verdict == Verdict(False, reason="use make test")


def test_nobody_approves_without_a_terminal_and_that_is_recorded(store: ApprovalStore) -> None:
    found = store.add(call(), "c1")

    refused = _run("approve", found.short_id)

    assert "approving needs a person at a terminal" in str(refused.exception)
    assert store.find(found.id).status is Status.WAITING
    (entry,) = json.loads(run("audit", "show", "--tool", "approve", "--json"))["calls"]
    assert (entry["decision"], entry["rule"]) == ("deny", "E_PERMISSION")


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize("word", ["approve", "deny"])
def test_a_command_that_a_model_runs_decides_nothing(
    store: ApprovalStore, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    found = store.add(call(), "c1")
    monkeypatch.setenv("GOAT_MCP_CALL", "1.call")

    refused = _run(word, found.short_id)

    assert "a command that a model runs cannot" in str(refused.exception)
    assert store.find(found.id).status is Status.WAITING
    (entry,) = json.loads(run("audit", "show", "--tool", word, "--json"))["calls"]
    assert entry["decision"] == "deny"


@pytest.mark.e2e
@pytest.mark.real_processes
@pytest.mark.linux_only("others' variables are read in /proc")
def test_a_command_that_a_model_runs_on_a_terminal_without_its_mark_decides_nothing(
    store: ApprovalStore, tmp_path: Path
) -> None:
    found = store.add(call(), "c1")
    variables = {"GOAT_MCP_STATE_DIR": os.environ["GOAT_MCP_STATE_DIR"], "HOME": str(tmp_path), "GOAT_MCP_CALL": "1.c"}
    hidden = f"env -u GOAT_MCP_CALL {shlex.join(goat_command('approve', found.short_id))}; exit $?"

    with TerminalSession(("sh", "-c", hidden), cwd=tmp_path, variables=variables, columns=160) as terminal:
        code = terminal.end()

    assert code == 1 and "a command that a model runs cannot approve" in terminal.shown
    assert store.find(found.id).status is Status.WAITING


def _nothing(store: ApprovalStore, state: StateDirectory, found: Approval) -> None:
    pass


def _ran(store: ApprovalStore, state: StateDirectory, found: Approval) -> None:
    store.use(found.id, "ran-1")
    ended(state, "ran-1")


def _failed(store: ApprovalStore, state: StateDirectory, found: Approval) -> None:
    store.use(found.id, "ran-1")
    ended(state, "ran-1", "E_EXIT")


def _killed(store: ApprovalStore, state: StateDirectory, found: Approval) -> None:
    store.use(found.id, "ran-1")
    ended(state, "ran-1", has_ended=False)
    _die(store, found)


def _killed_at_once(store: ApprovalStore, state: StateDirectory, found: Approval) -> None:
    store.use(found.id, "ran-1")
    _die(store, found)


def _die(store: ApprovalStore, found: Approval) -> None:
    """The process that ran it has gone."""
    import sqlite3

    with sqlite3.connect(StateDirectory.default().path / "approvals.db") as connection:
        connection.execute("UPDATE approvals SET process = '999999999-1' WHERE id = ?", (found.id,))


@pytest.mark.parametrize(
    ("happens", "result"),
    [
        (_nothing, "the call has not run yet"),
        (_ran, "the call ran, 1.5 s"),
        (_failed, "the call failed with E_EXIT, 1.5 s"),
        (_killed, "the call began and no end is recorded: it may have taken effect"),
        (_killed_at_once, "the call began and no end is recorded: it may have taken effect"),
    ],
)
def test_what_became_of_an_approved_call_is_said(
    store: ApprovalStore,
    state: StateDirectory,
    happens: Callable[[ApprovalStore, StateDirectory, Approval], None],
    result: str,
) -> None:
    found = store.add(call(), "c1")
    store.decide(found.id, Verdict(True), "page")
    happens(store, state, found)

    shown = rows(run("approvals", "--all"))

    assert shown[0] == ["id", "kind", "what", "decision", "result"]
    assert shown[1][3].startswith("approved (once) by page, ") and shown[1][4] == result
    (entry,) = json.loads(run("approvals", "--all", "--json"))["decided"]
    assert (entry["decided_by"], entry["result"]) == ("page", result)


def watching(tmp_path: Path, *words: str) -> TerminalSession:
    state = os.environ["GOAT_MCP_STATE_DIR"]
    return TerminalSession(
        goat_command("approvals", "--watch", *words),
        cwd=tmp_path,
        variables={"GOAT_MCP_STATE_DIR": state, "HOME": str(tmp_path)},
        columns=120,
    )


@pytest.mark.e2e
def test_on_a_terminal_new_ones_appear_within_a_second_and_decided_ones_go(
    store: ApprovalStore, tmp_path: Path
) -> None:
    with watching(tmp_path) as terminal:
        terminal.wait_for("Nothing waits for you.")

        came_s = time.monotonic()
        found = store.add(call("Bash: make deploy"), "c1")
        terminal.wait_for("Bash: make deploy")
        seen_s = time.monotonic() - came_s
        terminal.wait_for("goat-mcp approve ID")
        times = terminal.shown.count("Nothing waits for you.")
        store.decide(found.id, Verdict(True), "page")
        terminal.wait_until(lambda: terminal.shown.count("Nothing waits for you.") > times, "it does not go")
        terminal.type(CTRL_C)

        assert terminal.end() == 130
    assert seen_s < 1.0


@pytest.mark.e2e
def test_a_person_at_a_terminal_approves_and_the_waiting_process_sees_it(store: ApprovalStore, tmp_path: Path) -> None:
    found = store.add(call(), "c1")
    variables = {"GOAT_MCP_STATE_DIR": os.environ["GOAT_MCP_STATE_DIR"], "HOME": str(tmp_path)}
    command = goat_command("approve", found.short_id, "--always")

    with TerminalSession(command, cwd=tmp_path, variables=variables, columns=120) as terminal:
        refused = terminal.end()
    with TerminalSession(command[:-1], cwd=tmp_path, variables=variables, columns=120) as terminal:
        code = terminal.end()

    assert refused == 5  # nothing was offered for good
    assert code == 0 and "approved (once)" in terminal.shown
    assert store.use(found.id, "c1") is not None
