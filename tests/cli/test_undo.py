"""`goat-mcp undo` as a person uses it, on changes that `goat-mcp call` made."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.quick_start import goat_command

TIMEOUT_S = 60


@dataclass(frozen=True)
class Shell:
    """The program, run in one folder with a state directory beside it."""

    folder: Path
    state: Path

    def run(self, *words: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GOAT_MCP_")}
        mine = {"GOAT_MCP_STATE_DIR": str(self.state), "XDG_CONFIG_HOME": str(self.state / "config")}
        return subprocess.run(
            goat_command(*words),
            cwd=cwd or self.folder,
            env={**inherited, **mine, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )

    def call(self, tool: str, **arguments: str) -> None:
        done = self.run(
            *("call", tool, "--allowed-tool", tool, "--set", "files.read_before_write=off"),
            *("--input-json", json.dumps(arguments)),
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def listed(self) -> list[Mapping[str, Any]]:
        return json.loads(self.run("undo", "--list", "--json").stdout)


def recorded(shell: Shell, tool: str) -> list[dict[str, Any]]:
    """What `goat-mcp audit show` says of these."""
    calls = json.loads(shell.run("audit", "show", "--tool", tool, "--json").stdout)["calls"]
    return [{key: call.get(key) for key in ("decision", "by", "rule", "error_code")} for call in calls]


def test_an_undo_is_recorded_before_and_after_and_so_is_one_that_was_refused(shell: Shell) -> None:  # R-AUDIT-2
    path = shell.folder / "f.txt"
    path.write_text("one")
    shell.call("Write", file_path="@f.txt", content="two")
    (write,) = shell.listed()

    done = json.loads(shell.run("undo", "--json").stdout)
    shell.call("Write", file_path="@f.txt", content="three")
    path.write_text("mine")
    shell.run("undo")
    shell.run("undo", "--dry-run")
    shell.run("undo", GOAT_MCP_CALL="1.call")

    newest = shell.listed()[0]
    assert recorded(shell, "undo") == [
        {"decision": "allow", "by": "user", "rule": f"terminal, calls {write['call_id']}", "error_code": None},
        {"decision": "allow", "by": "user", "rule": f"terminal, calls {newest['call_id']}", "error_code": "E_STALE"},
        {"decision": "deny", "by": None, "rule": "E_PERMISSION", "error_code": "E_PERMISSION"},
    ]
    (shown,) = shell.run("audit", "show", "--call", done["undo_id"]).stdout.splitlines()[1:]
    assert shown.startswith(done["undo_id"])
    assert shell.run("audit", "verify").returncode == 0


def test_without_a_record_nothing_is_undone(shell: Shell) -> None:  # R-AUDIT-4
    path = shell.folder / "f.txt"
    path.write_text("one")
    shell.call("Write", file_path="@f.txt", content="two")
    record = shell.state / "audit.jsonl"
    record.unlink()
    record.mkdir()

    refused = shell.run("undo")

    assert refused.returncode != 0
    assert "the record of calls cannot be written" in refused.stderr
    assert path.read_text() == "two"


def test_the_last_changes_are_undone_newest_first(shell: Shell) -> None:
    path = shell.folder / "f.txt"
    path.write_text("one")
    shell.call("Write", file_path="@f.txt", content="two")
    shell.call("Edit", file_path="@f.txt", old_string="two", new_string="three")
    edit, write = shell.listed()

    first = shell.run("undo")
    second = shell.run("undo")
    third = shell.run("undo")

    assert first.stdout.splitlines()[0] == f"restored: {path} (Edit {edit['call_id']})"
    assert second.stdout.splitlines()[0] == f"restored: {path} (Write {write['call_id']})"
    assert third.stdout == "Nothing to undo in this workspace.\n"
    assert (first.returncode, second.returncode, third.returncode) == (0, 0, 0)
    assert path.read_text() == "one"


def test_an_undo_is_undone_by_the_id_it_names(shell: Shell) -> None:
    shell.call("Write", file_path="@f.txt", content="x")
    done = shell.run("undo")
    assert not (shell.folder / "f.txt").exists()
    command = done.stdout.splitlines()[-1].removeprefix("To take this back: goat-mcp ").split()

    again = shell.run(*command)

    assert again.returncode == 0, again.stderr
    assert (shell.folder / "f.txt").read_text() == "x"


def test_one_call_is_undone_by_the_start_of_its_id_and_not_twice(shell: Shell) -> None:
    for name in ("a", "b"):
        shell.call("Write", file_path=f"@{name}", content="x")
    call_id = shell.listed()[1]["call_id"]

    done = shell.run("undo", "--call", call_id[:10], "--json")
    again = shell.run("undo", "--call", call_id, "--json")

    told = json.loads(done.stdout)["changes"]
    assert [(change["outcome"], change["path"]) for change in told] == [("undone", str(shell.folder / "a"))]
    assert [path.name for path in shell.folder.iterdir()] == ["b"]
    assert (again.returncode, json.loads(again.stderr)["error"]["code"]) == (1, "E_NO_CHANGE")


def test_a_file_that_changed_since_is_refused_with_what_to_do(shell: Shell) -> None:
    path = shell.folder / "f.txt"
    shell.call("Write", file_path="@f.txt", content="x")
    path.write_text("mine")

    done = shell.run("undo")

    assert done.returncode == 5
    assert done.stdout == (
        f"not undone: {path} has changed since; it was left as it is. What came after this change would be lost. "
        "Undo it by hand, or take the later change back first.\n"
    )
    assert path.read_text() == "mine"


def test_a_dry_run_changes_nothing(shell: Shell) -> None:
    shell.call("Write", file_path="@f.txt", content="x")

    done = shell.run("undo", "--dry-run")

    assert done.stdout.startswith("would be removed again: ")
    assert (shell.folder / "f.txt").exists()


def test_another_workspace_is_left_alone_unless_it_is_named(shell: Shell, tmp_path: Path) -> None:
    shell.call("Write", file_path="@f.txt", content="x")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    there = shell.run("undo", cwd=elsewhere)
    named = shell.run("undo", "--workspace", str(shell.folder), cwd=elsewhere)

    assert there.stdout == "Nothing to undo in this workspace.\n"
    assert named.stdout.startswith("removed again: ")
    assert list(shell.folder.iterdir()) == []


def test_a_command_that_a_model_runs_cannot_undo_but_may_look(shell: Shell) -> None:
    shell.call("Write", file_path="@f.txt", content="x")

    done = shell.run("undo", GOAT_MCP_CALL="1.call")
    looked = shell.run("undo", "--list", GOAT_MCP_CALL="1.call")

    assert done.returncode == 1
    assert "a command that a model runs cannot undo changes" in done.stderr
    assert (shell.folder / "f.txt").exists()
    assert "created" in looked.stdout


def test_an_unknown_call_and_both_flags_are_told(shell: Shell) -> None:
    unknown = shell.run("undo", "--call", "nope")
    both = shell.run("undo", "--call", "x", "--last", "2")

    assert unknown.stderr == "goat-mcp: no change of a call 'nope' here\nSee goat-mcp undo --list.\n"
    assert "--last and --call exclude each other" in both.stderr
    assert (unknown.returncode, both.returncode) == (1, 1)


def test_a_file_name_cannot_command_the_terminal(shell: Shell) -> None:
    shell.call("Write", file_path="@a\x1b[31mb", content="x")

    assert "\x1b" not in shell.run("undo", "--list").stdout
    assert "\x1b" not in shell.run("undo").stdout
