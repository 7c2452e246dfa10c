"""`goat-mcp rules allow|ask|deny|remove|test` as a person uses them: what is written, what it means, what wins."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.remembered import RememberedRules
from goat_mcp.gateway.build.working_directories import scope_of
from goat_mcp.state.directory import StateDirectory
from tests.cli.terminal_runs import COLUMNS, run_on_terminal
from tests.cli.test_undo import Shell

OWN = """\
# what I let run
permissions:
  allow:
    - Bash(git status)   # often
  deny: [Bash(npm run deploy), 'Read(./secrets/**)']
mode: default
"""


@pytest.fixture
def own(shell: Shell) -> Path:
    file = shell.state / "config" / "goat-mcp" / "goat-mcp.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(OWN)
    return file


def run(shell: Shell, *words: str) -> dict[str, Any]:
    done = shell.run("rules", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_rule_is_written_into_the_users_file_and_all_else_of_it_stays(shell: Shell, own: Path) -> None:
    done = shell.run("rules", "allow", "Bash(npm run *)")

    assert done.returncode == 0, done.stderr
    assert own.read_text() == OWN.replace("# often\n", "# often\n    - Bash(npm run *)\n")
    assert own.stat().st_mode & 0o777 == 0o600
    assert "+    - Bash(npm run *)" in done.stdout.splitlines()
    assert "Allowed without asking: commands like `npm run *`." in done.stdout.splitlines()
    assert f"Stricter, and wins over it: deny Bash(npm run deploy) ({own}:6)" in done.stdout
    assert "secrets" not in done.stdout.partition("Written")[2]


def test_the_file_is_made_if_there_is_none(shell: Shell) -> None:
    document = run(shell, "deny", "WebFetch", "mcp__mail")

    file = shell.state / "config" / "goat-mcp" / "goat-mcp.yaml"
    assert file.read_text() == "permissions:\n  deny:\n    - WebFetch\n    - mcp__mail\n"
    assert (document["file"], document["changed"], document["effect"]) == (str(file), True, "deny")
    assert [one["means"] for one in document["rules"]] == [
        "refused in every mode: all calls of WebFetch",
        "refused in every mode: all tools of the server mail",
    ]
    assert document["notes"] == ["No server is called mail here."]


def test_a_variable_that_holds_the_whole_list_is_named(shell: Shell, own: Path) -> None:
    done = shell.run("rules", "allow", "Write", GOAT_MCP_PERMISSIONS__ALLOW='["Edit"]')

    assert done.returncode == 0, done.stderr
    assert "It does not count here: permissions.allow is set by the environment, which beats files." in done.stdout


def test_a_rule_that_is_there_already_is_not_written_again(shell: Shell, own: Path) -> None:
    document = run(shell, "allow", "Bash(git status)")

    assert (document["changed"], own.read_text()) == (False, OWN)


def test_a_dry_run_writes_nothing(shell: Shell, own: Path) -> None:
    done = shell.run("rules", "ask", "Edit(src/**)", "--dry-run")

    assert done.returncode == 0
    assert "+    - Edit(src/**)" in done.stdout and "Nothing was written" in done.stdout
    assert own.read_text() == OWN


def test_a_rule_with_an_end_is_listed_with_it_and_goes_with_the_next_change_once_it_is_over(
    shell: Shell, own: Path
) -> None:
    before_s = time.time()
    document = run(shell, "allow", "Bash(make)", "--expires", "1h")
    (rule,) = document["rules"]
    own.write_text(own.read_text().replace(rule["rule"], "Bash(make) until 2020-01-01T00:00:00Z"))
    listed = {one["rule"]: one for one in json.loads(shell.run("rules", "--json").stdout)}

    swept = run(shell, "deny", "WebFetch")

    assert rule["rule"].startswith("Bash(make) until ")
    assert before_s + 3500 < rule["until_s"] < time.time() + 3600
    over = listed["Bash(make) until 2020-01-01T00:00:00Z"]
    assert (over["has_ended"], datetime.fromisoformat(over["until"]).year) == (True, 2020)
    assert swept["ended"] == ["Bash(make) until 2020-01-01T00:00:00Z"]
    assert "2020" not in own.read_text() and "# often" in own.read_text()


def test_a_rule_with_another_end_takes_the_place_of_the_first(shell: Shell, own: Path) -> None:
    run(shell, "allow", "Bash(git status)", "--expires", "30m")
    first = own.read_text()
    run(shell, "allow", "Bash(git status)", "--expires", "7d")
    second = own.read_text()
    run(shell, "allow", "Bash(git status)")

    assert first.count("Bash(git status)") == second.count("Bash(git status)") == 1
    assert first != second
    assert "until" in second and "until" not in own.read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["allow", "Bahs(ls)"], "rule 'Bahs(ls)': names no tool; did you mean Bash?"),
        (["allow", "Bash(npm run *"], "the brackets do not close; write e.g. Bash(npm run *)"),
        (["allow", "*"], "this is no tool name; write e.g. Bash"),
        (["deny", "Grep(secrets)"], "Grep takes no path; write Read(secrets)"),
        (["allow", "Write", "--expires", "soon"], "'soon' is no span of time; write e.g. 30m, 1h, 7d or 2w"),
        (["allow", "Write until 2040-01-01T00:00:00Z", "--expires", "1h"], "has an end already"),
        (["allow", "Write until 2020-01-01T00:00:00Z"], "is over already"),
        (["remove", "Bash(git statsu)"], "no rule 'Bash(git statsu)' holds here; did you mean Bash(git status)?"),
        (["remove", "9"], "no rule '9' holds here"),
        (["allow"], "Missing argument"),
    ],
)
def test_a_mistake_is_named_with_the_next_step_and_nothing_is_written(
    shell: Shell, own: Path, words: list[str], told: str
) -> None:
    done = shell.run("rules", *words)
    as_json = shell.run("rules", *words, "--json")

    assert done.returncode == as_json.returncode == 1
    assert told in done.stderr
    assert told in json.loads(as_json.stderr)["error"]["message"] and as_json.stdout == ""
    assert own.read_text() == OWN


def test_of_several_rules_one_that_is_broken_leaves_all_as_it_is(shell: Shell, own: Path) -> None:
    assert shell.run("rules", "allow", "Write", "Nope").returncode == 1
    assert shell.run("rules", "remove", "Bash(git status)", "Nope").returncode == 1
    assert own.read_text() == OWN


def test_a_file_that_cannot_be_edited_is_named(shell: Shell, own: Path) -> None:
    own.write_text("permissions: {allow: [\n")

    done = shell.run("rules", "allow", "Write")

    assert done.returncode == 1
    assert str(own) in done.stderr and "line 2" in done.stderr


def test_a_rule_of_a_project_counts_as_far_as_that_is_trusted(shell: Shell, own: Path) -> None:
    denied = shell.run("rules", "deny", "WebFetch", "--project")
    listed = [one["rule"] for one in json.loads(shell.run("rules", "--json").stdout)]
    allowed = shell.run("rules", "allow", "Bash(date)", "--project")
    after = [one["rule"] for one in json.loads(shell.run("rules", "--json").stdout)]

    assert denied.returncode == allowed.returncode == 0
    assert "WebFetch" in listed and "Bash(date)" not in after
    assert "only what it denies counts until you trust it: goat-mcp trust" in allowed.stdout
    assert (shell.folder / "goat-mcp.yaml").read_text() == (
        "permissions:\n  deny:\n    - WebFetch\n  allow:\n    - Bash(date)\n"
    )
    assert own.read_text() == OWN


def test_rules_are_removed_by_text_by_number_and_by_the_id_of_an_answer(shell: Shell, own: Path) -> None:
    def warn(event: str, **facts: Any) -> None:
        raise AssertionError((event, facts))

    remembered = RememberedRules(StateDirectory(shell.state), scope_of((shell.folder,)), warn)
    remembered.add("local", ["Edit(//ws/a)", "Edit(//ws/b)"])
    listed = json.loads(shell.run("rules", "--json").stdout)
    numbers = {one["rule"]: str(one["number"]) for one in listed}
    answer = next(one["id"] for one in listed if one["rule"] == "Edit(//ws/a)")

    done = run(shell, "remove", "Bash(git status)", numbers["Read(./secrets/**)"], answer, "Edit(//ws/b)")

    assert own.read_text() == (
        "# what I let run\npermissions:\n  allow: []\n  deny: [Bash(npm run deploy)]\nmode: default\n"
    )
    assert sorted((one["effect"], one["rule"]) for one in done["files"][0]["removed"]) == [
        ("allow", "Bash(git status)"),
        ("deny", "Read(./secrets/**)"),
    ]
    assert sorted(one["rule"] for one in done["forgotten"]) == ["Edit(//ws/a)", "Edit(//ws/b)"]
    assert remembered.oldest_first() == ()


def test_a_broken_rule_can_be_removed_by_its_text(shell: Shell, own: Path) -> None:
    own.write_text(OWN.replace("Bash(git status)", "Bahs(git status)"))

    done = shell.run("rules", "remove", "Bahs(git status)")

    assert done.returncode == 0, done.stderr
    assert "Bahs" not in own.read_text()


def test_a_rule_that_stands_elsewhere_is_not_removed_and_the_place_is_named(shell: Shell, own: Path) -> None:
    done = shell.run("rules", "remove", "Edit", GOAT_MCP_PERMISSIONS__DENY='["Edit"]')

    assert done.returncode == 1
    assert "deny Edit stands in the environment variable GOAT_MCP_PERMISSIONS__DENY" in done.stderr


def test_what_stands_in_the_list_of_blocked_commands_is_not_removed_as_a_rule(shell: Shell, own: Path) -> None:
    own.write_text(f"{OWN}bash: {{blocked: [rm]}}\n")
    number = next(one["number"] for one in json.loads(shell.run("rules", "--json").stdout) if "blocked" in one["rule"])

    done = shell.run("rules", "remove", str(number))

    assert done.returncode == 1
    assert f"stands in {own}:7" in done.stderr and "goat-mcp config get bash.blocked" in done.stderr


@pytest.mark.parametrize(
    "words", [["allow", "Write"], ["ask", "Write"], ["deny", "Write"], ["remove", "1"], ["forget", "x"]]
)
def test_a_models_command_changes_no_rule(shell: Shell, own: Path, words: list[str]) -> None:
    done = shell.run("rules", *words, GOAT_MCP_CALL="1.call")

    assert done.returncode == 1
    assert "a command that a model runs cannot change what is allowed" in done.stderr
    assert own.read_text() == OWN


def test_a_call_is_tested_without_running_it(shell: Shell, own: Path) -> None:
    allowed = shell.run("rules", "test", "Bash", "command=git status", "--json")
    denied = shell.run("rules", "test", "Bash", "--input-json", '{"command": "npm run deploy"}')

    assert allowed.returncode == 0
    facts = json.loads(allowed.stdout)
    assert (facts["effect"], facts["rule"], facts["origin"]) == ("allow", "Bash(git status)", f"{own}:4")
    assert facts["changed_by"] == ["goat-mcp rules remove 'Bash(git status)'"]
    assert denied.returncode == 5
    assert f"{own}:5" in denied.stdout
    assert "to change that: goat-mcp rules remove 'Bash(npm run deploy)'" in denied.stdout


@pytest.mark.parametrize(
    ("words", "commands"),
    [
        (["Bash", "command=npm test"], ["goat-mcp rules allow 'Bash(npm test)'"]),
        (["Write", "file_path=@a b", "content=x"], ["goat-mcp rules allow 'Write(/{folder}/a b)'"]),
        (["TodoWrite", "todos=[]"], ["goat-mcp rules deny TodoWrite"]),
        (["Write", "file_path=@a", "content=x", "--mode", "plan"], []),
        (["Write", "file_path=@.vscode/a", "content=x"], []),
        (["Bash", "command=cd a && npm test"], []),
    ],
)
def test_what_would_change_a_decision_is_a_command_to_type(
    shell: Shell, own: Path, words: list[str], commands: list[str]
) -> None:
    facts = json.loads(shell.run("rules", "test", *words, "--json").stdout)

    assert facts["changed_by"] == [command.format(folder=shell.folder) for command in commands]


def test_on_a_terminal_of_80_columns_nothing_is_cut(shell: Shell, own: Path) -> None:
    variables = {"XDG_CONFIG_HOME": str(own.parent.parent)}

    code, listed = run_on_terminal("rules", cwd=shell.folder, home=shell.state, variables=variables)
    changed, said = run_on_terminal(
        "rules", "allow", "Bash(npm run *)", cwd=shell.folder, home=shell.state, variables=variables
    )

    assert code == changed == 0, listed + said
    header, *rows = listed.splitlines()
    assert header.split() == ["no.", "effect", "rule", "where"]
    assert all(len(row) <= COLUMNS for row in rows)
    assert "Bash(git status)" in listed and "Read(./secrets/**)" in listed
    assert "Allowed without asking: commands like `npm run *`." in said
