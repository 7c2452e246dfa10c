"""`goat-mcp rules` as a person uses it: what holds here, where it stands, and what is taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from goat_mcp.calls.approvals.record import Kind, Request, Verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.calls.permissions.remembered import RememberedRules
from goat_mcp.gateway.build.working_directories import scope_of
from goat_mcp.processes.process_table import this_process
from goat_mcp.state.directory import StateDirectory
from tests.cli.test_undo import Shell


def warn(event: str, **facts: Any) -> None:
    raise AssertionError((event, facts))


def remembered(shell: Shell, folder: Path | None = None) -> RememberedRules:
    """What a server that runs there remembers."""
    return RememberedRules(StateDirectory(shell.state), scope_of((folder or shell.folder,)), warn)


def listed(shell: Shell, *words: str) -> list[dict[str, Any]]:
    done = shell.run("rules", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_rules_are_listed_deny_first_with_the_place_where_each_stands(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("permissions:\n  allow:\n    - Bash(ls)\n  deny: [Edit]\nbash:\n  blocked: [git push]\n")
    rules = remembered(shell)
    rules.add("local", ["Bash(make)"], str(shell.folder))
    rules.add("ada", ["Edit(//ws/a)"])
    (make, edit) = rules.oldest_first()

    found = listed(shell, "--config", str(file))
    shown = shell.run("rules", "--config", str(file)).stdout.splitlines()

    assert [(one["effect"], one["rule"], one["origin"]) for one in found] == [
        ("deny", "Edit", f"{file}:4"),
        ("deny", "bash.blocked: git push", f"{file}:6"),
        ("allow", "Bash(ls)", f"{file}:3"),
        ("allow", "Bash(make)", f"{rules.path}:1"),
        ("allow", "Edit(//ws/a)", f"{rules.path}:2"),
    ]
    assert found[3] | {"remembered_at_s": 0} == {
        "number": 4,
        "effect": "allow",
        "rule": "Bash(make)",
        "origin": f"{rules.path}:1",
        "id": make.id,
        "principal": "local",
        "directory": str(shell.folder),
        "remembered_at_s": 0,
    }
    assert shown[0] == "no.\teffect\trule\twhere"
    assert shown[3] == f"3\tallow\tBash(ls)\t{file}:3"
    assert shown[4].startswith("4\tallow\tBash(make)\tremembered ")
    assert shown[4].endswith(f"as {make.id} in {shell.folder}")
    assert shown[5].endswith(f"as {edit.id} for ada")


def test_what_a_running_session_may_do_is_listed_until_its_server_ends(shell: Shell) -> None:
    store = ApprovalStore(StateDirectory(shell.state))
    for process, rule in ((this_process(), "Bash(make)"), ("1-0", "Bash(ls)")):
        asked = Request(
            Kind.CALL, rule, "Bash", "local", f"{process}/s", client="Editor 1", workspace="/ws", tool="Bash"
        )
        store.decide(store.add(asked).id, Verdict(True, "session", (rule,)), "page")

    (found,) = listed(shell)
    shown = shell.run("rules").stdout.splitlines()
    store.take_back(found["id"])
    after = listed(shell)

    assert (found["number"], found["rule"], found["origin"], found["client"]) == (
        None,
        "Bash(make)",
        "session",
        "Editor 1",
    )
    assert shown[-1] == "Bash(make)\tEditor 1\t/ws"
    assert "goat-mcp ui takes it back" in shown[-3]
    assert after == []


def test_a_rule_is_forgotten_by_its_id_and_a_running_server_sees_it(shell: Shell) -> None:
    server = remembered(shell)
    server.add("local", ["Bash(make)"], "/a")
    server.add("local", ["Bash(make)"], "/b")
    server.add("local", ["Bash(make)"], "/a")
    before = len(server.of("local"))
    first = next(one for one in server.oldest_first() if one.rule.directory == "/a")

    done = shell.run("rules", "forget", first.id)

    assert (done.returncode, done.stdout) == (0, "forgotten: Bash(make) in /a\n")
    assert before == 3
    assert [rule.directory for rule in server.of("local")] == ["/b"]


def test_a_rule_is_forgotten_by_its_text_for_everybody_and_the_rest_stays(shell: Shell) -> None:
    server = remembered(shell)
    server.add("local", ["Edit(//ws/a)"])
    server.add("ada", ["Edit(//ws/a)", "WebFetch(domain:example.org)"])

    done = json.loads(shell.run("rules", "forget", "Edit(//ws/a)", "--json").stdout)

    assert sorted(one["principal"] for one in done) == ["ada", "local"]
    assert [one.rule.text for one in server.oldest_first()] == ["WebFetch(domain:example.org)"]
    assert server.path.stat().st_mode & 0o777 == 0o600


def test_of_several_names_one_that_is_unknown_leaves_all_as_it_is(shell: Shell) -> None:
    server = remembered(shell)
    server.add("local", ["Edit(//ws/a)"])

    done = shell.run("rules", "forget", "Edit(//ws/a)", "Bash(ls)")

    assert done.returncode == 1
    assert "no remembered rule 'Bash(ls)' in this workspace" in done.stderr
    assert len(server.of("local")) == 1


def test_what_another_workspace_remembers_is_shown_where_that_is_named(shell: Shell, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    remembered(shell, other).add("local", ["Edit(//ws/a)"])

    assert listed(shell) == []
    assert [one["rule"] for one in listed(shell, "--workspace", str(other))] == ["Edit(//ws/a)"]
    assert shell.run("rules", "forget", "Edit(//ws/a)", "--workspace", str(other)).returncode == 0


def test_a_line_that_is_no_rule_is_told_and_kept(shell: Shell) -> None:
    server = remembered(shell)
    server.add("local", ["Edit(//ws/a)", "Edit(//ws/b)"])
    with server.path.open("a") as file:
        file.write("{}\n")

    done = shell.run("rules", "forget", "Edit(//ws/a)")

    assert done.returncode == 0
    assert f"{server.path}:3" in done.stderr
    assert server.path.read_text().splitlines()[1] == "{}"


def test_list_shows_the_same(shell: Shell) -> None:
    remembered(shell).add("local", ["Edit(//ws/a)"])

    assert json.loads(shell.run("rules", "list", "--json").stdout) == listed(shell) != []
    assert shell.run("rules", "list").stdout == shell.run("rules").stdout


def test_a_file_in_the_home_directory_is_shown_as_people_write_it(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "home" / "settings.yaml"
    file.parent.mkdir()
    file.write_text("permissions: {deny: [Edit]}\n")

    shown = shell.run("rules", "--config", str(file), HOME=str(file.parent)).stdout

    assert shown.splitlines()[1] == "1\tdeny\tEdit\t~/settings.yaml:1"


def test_a_broken_rule_is_named(shell: Shell) -> None:
    done = shell.run("rules", "--set", 'permissions.deny=["Bahs"]')

    assert done.returncode == 1
    assert "names no tool; did you mean Bash?" in done.stderr
