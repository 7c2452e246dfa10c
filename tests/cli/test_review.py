"""`goat-mcp review` as a person uses it. The person is at a terminal: stdin is one here, where that counts."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_undo import TIMEOUT_S, Shell, recorded
from tests.quick_start import goat_command


class Reviewing(Shell):
    """`call` stages; `decide` is a person's command."""

    def stage(self, name: str, content: str) -> str:
        done = self.run(
            *("call", "Write", f"file_path=@{name}", f"content={content}", "--allowed-tool", "Write", "--json"),
            *("--set", "files.read_before_write=off", "--set", "files.review_mode=true"),
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["_meta"]["goat-mcp/facts"]["change_id"]

    def decide(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        ours, theirs = pty.openpty()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GOAT_MCP_")}
        try:
            return subprocess.run(
                goat_command("review", *words),
                cwd=self.folder,
                env={**inherited, "GOAT_MCP_STATE_DIR": str(self.state), **variables},
                stdin=theirs,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
            )
        finally:
            os.close(ours)
            os.close(theirs)

    def listed(self) -> list[Mapping[str, Any]]:
        return json.loads(self.run("review", "list", "--json").stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Reviewing:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "f.txt").write_text("one\n")
    return Reviewing(folder, tmp_path / "state")


def test_a_change_is_listed_shown_and_applied(shell: Reviewing) -> None:
    path = shell.folder / "f.txt"
    id = shell.stage("f.txt", "two\n")

    listed = shell.run("review", "list").stdout
    shown = shell.run("review", "show", id).stdout
    before = path.read_text()
    applied = shell.decide("apply", id)

    headers, row = (line.split("\t") for line in listed.splitlines())
    assert headers == ["id", "proposed", "tool", "change", "file", "principal"]
    assert [row[0], *row[2:]] == [id, "Write", "change", str(path), ""]
    assert shown == f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-one\n+two\n"
    assert (before, path.read_text()) == ("one\n", "two\n")
    assert (applied.returncode, applied.stdout) == (0, f"{id} applied {path}\n")
    assert shell.run("review", "list").stdout == "No changes wait for review.\n"


def test_an_applied_change_can_be_undone(shell: Reviewing) -> None:
    shell.decide("apply", shell.stage("f.txt", "two\n"))

    done = shell.run("undo")

    assert done.stdout.startswith("restored: ")
    assert (shell.folder / "f.txt").read_text() == "one\n"


def test_all_are_applied_and_one_that_cannot_be_keeps_waiting(shell: Reviewing) -> None:
    bad, good = shell.stage("f.txt", "two\n"), shell.stage("new.txt", "n\n")
    (shell.folder / "f.txt").write_text("mine\n")

    done = shell.decide("apply", "--all", "--json")

    assert done.returncode == 5
    assert [(outcome["id"], outcome["outcome"]) for outcome in json.loads(done.stdout)] == [
        (bad, "refused"),
        (good, "applied"),
    ]
    assert (shell.folder / "f.txt").read_text() == "mine\n"
    assert [entry["id"] for entry in shell.listed()] == [bad]


def test_a_rejected_change_is_gone(shell: Reviewing) -> None:
    id = shell.stage("f.txt", "two\n")

    done = shell.decide("reject", id)

    assert (done.returncode, done.stdout) == (0, f"{id} rejected {shell.folder / 'f.txt'}\n")
    assert shell.listed() == []
    assert (shell.folder / "f.txt").read_text() == "one\n"


@pytest.mark.parametrize("action", ["apply", "reject"])
def test_a_command_that_a_model_runs_cannot_decide(shell: Reviewing, action: str) -> None:
    id = shell.stage("f.txt", "two\n")

    done = shell.decide(action, id, GOAT_MCP_CALL="1.call")

    assert done.returncode == 1
    assert "a command that a model runs cannot decide about changes" in done.stderr
    assert [entry["id"] for entry in shell.listed()] == [id]


def test_each_decision_is_recorded_before_and_after_and_so_is_who_may_not(shell: Reviewing) -> None:  # R-AUDIT-2
    applied, rejected = shell.stage("f.txt", "two\n"), shell.stage("g.txt", "x")

    shell.decide("apply", applied)
    shell.decide("reject", rejected)
    shell.decide("apply", rejected)
    shell.decide("apply", rejected, GOAT_MCP_CALL="1.call")

    assert recorded(shell, "review apply") == [
        {"decision": "allow", "by": "user", "rule": f"terminal, change {applied}", "error_code": None},
        {"decision": "allow", "by": "user", "rule": f"terminal, change {rejected}", "error_code": "E_NOT_FOUND"},
        {"decision": "deny", "by": None, "rule": "E_PERMISSION", "error_code": "E_PERMISSION"},
    ]
    assert recorded(shell, "review reject") == [
        {"decision": "allow", "by": "user", "rule": f"terminal, change {rejected}", "error_code": None}
    ]


def test_applying_wants_a_terminal(shell: Reviewing) -> None:
    id = shell.stage("f.txt", "two\n")

    done = shell.run("review", "apply", id)

    assert done.returncode == 1
    assert done.stderr == (
        f"goat-mcp: applying changes needs a person at a terminal\nRun it there: goat-mcp review apply {id}\n"
    )
    assert (shell.folder / "f.txt").read_text() == "one\n"


def test_wrong_usage_is_told(shell: Reviewing) -> None:
    assert "name the changes, or --all" in shell.decide("apply").stderr
    assert "no change '../../x' waits here" in shell.decide("apply", "../../x").stdout
    assert "no change 'nope' waits here" in shell.run("review", "show", "nope").stderr


def test_changes_of_other_workspaces_are_only_counted(shell: Reviewing, tmp_path: Path) -> None:
    shell.stage("f.txt", "two\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    done = shell.run("review", "list", cwd=elsewhere)

    assert done.stdout == "1 more in other workspaces; name one with --workspace.\n"
