"""`goat-mcp config`: settings read with their source, changed with comments kept, and checked line by line."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from goat_mcp.gateway.settings_edit import edited_settings
from goat_mcp.settings.settings import path_keys
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.trust.project import project_say, whole_project
from goat_mcp.state.trust.settings_file import find_project_file
from goat_mcp.state.trust.store import TrustStore
from tests.cli.terminal_runs import COLUMNS, run_on_terminal
from tests.cli.test_servers import ok, own, refused, write
from tests.cli.test_undo import Shell


@pytest.fixture
def file(shell: Shell) -> Path:
    return write(
        own(shell, "goat-mcp.yaml"), "# mine\noutput:\n  max_chars: 20000  # enough\ncatalog: {deny: [Bash]}\n"
    )


def test_get_prints_the_value_and_where_it_comes_from(shell: Shell, file: Path) -> None:
    done = shell.run("config", "get", "output.max_chars")
    assert (done.stdout, done.stderr) == ("20000\n", f"from {file}:3\n")

    done = shell.run("config", "get", "output.max_chars", GOAT_MCP_OUTPUT__MAX_CHARS="30000")
    assert (done.stdout, done.stderr) == ("30000\n", "from the environment variable GOAT_MCP_OUTPUT__MAX_CHARS\n")

    assert json.loads(ok(shell, "config", "get", "mode", "--json")) == {
        "key": "mode",
        "value": "default",
        "source": "default",
        "origin": "the default",
    }


def test_list_shows_what_somebody_has_set(shell: Shell, file: Path) -> None:
    assert ok(shell, "config", "list").splitlines() == [
        "key\tvalue\tfrom",
        f"output.max_chars\t20000\t{file}:3",
        f'catalog.deny\t["Bash"]\t{file}:4',
    ]
    assert len(json.loads(ok(shell, "config", "list", "--all", "--json"))) > 50
    _, text = run_on_terminal(
        "config", "list", "catalog", cwd=shell.folder, variables={"XDG_CONFIG_HOME": str(file.parents[1])}
    )
    lines = [line.rstrip() for line in text.splitlines()]
    assert max(map(len, lines)) <= COLUMNS
    assert lines[0].split() == ["key", "value", "from"]


def test_set_and_unset_keep_comments_and_say_who_follows(shell: Shell, file: Path) -> None:
    shown = ok(shell, "config", "set", "output.max_chars", "50000")
    assert "-  max_chars: 20000  # enough\n+  max_chars: 50000  # enough" in shown

    document = json.loads(ok(shell, "config", "set", "catalog.deny", "Bash", "Edit", "--json"))
    assert (document["changed"], document["followed"], document["now"]["value"]) == (True, True, ["Bash", "Edit"])
    assert not json.loads(ok(shell, "config", "set", "mode", "plan", "--json"))["followed"]

    ok(shell, "config", "unset", "catalog.deny")
    assert file.read_text() == "# mine\noutput:\n  max_chars: 50000  # enough\nmode: plan\n"
    assert file.with_name("goat-mcp.yaml.bak").read_text().endswith("mode: plan\n")


def test_a_file_is_made_if_there_is_none_and_a_path_is_meant_from_here(shell: Shell) -> None:
    ok(shell, "config", "set", "workspace", "sub/..")

    file = own(shell, "goat-mcp.yaml")
    assert file.read_text() == f"workspace:\n  - {shell.folder}/sub/..\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_dry_run_writes_nothing(shell: Shell, file: Path) -> None:
    before = file.read_text()

    assert "Nothing was written (--dry-run)." in ok(shell, "config", "set", "mode", "plan", "--dry-run")
    assert file.read_text() == before


def test_a_key_below_a_setting_with_names_of_the_users_own(shell: Shell) -> None:
    ok(shell, "config", "set", "tools.telegram.token", "${env:TELEGRAM}")
    ok(shell, "config", "set", "profiles.review.read_only", "true")

    assert ok(shell, "config", "get", "tools.telegram.token") == "${env:TELEGRAM}\n"
    assert ok(shell, "config", "get", "profiles.review.read_only") == "true\n"
    assert "profiles.review.readonly: no such setting" in refused(
        shell, "config", "set", "profiles.review.readonly", "true"
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("set", "output.maxchars", "1"), "did you mean output.max_chars"),
        (("set", "max_chars", "30000"), "output.max_chars"),
        (("set", "output.max_chars", "lots"), "output.max_chars: wants a whole number; got 'lots'"),
        (("set", "output", "1"), "output is a group of settings\nSee: goat-mcp config get output"),
        (("set", "catalog.deny", "Bsh"), "'Bsh' names no tool; did you mean Bash"),
        (("set", "permissions.deny", "Bash("), "the brackets do not close"),
        (("set", "mode", "plan", "default"), "mode takes one value, got 2"),
        (("set", "agent.key", "sk-123456789012"), "goat-mcp secret set agent-key"),
        (("get", "catalog.alow"), "did you mean catalog.allow"),
        (("unset", "mode"), "mode is not set there"),
        (("list", "nothing-like-it"), "no setting 'nothing-like-it'"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(shell: Shell, file: Path, words: tuple[str, ...], told: str) -> None:
    before = file.read_text()

    assert told in refused(shell, "config", *words)
    assert file.read_text() == before


def test_a_broken_file_can_be_fixed_with_set_and_unset(shell: Shell, file: Path) -> None:
    file.write_text("mode: fast\ncatalgo: {}\n")

    ok_after_first = shell.run("config", "set", "mode", "plan")
    assert "mode: plan" in file.read_text(), ok_after_first.stderr
    assert ok(shell, "config", "unset", "catalgo")
    assert file.read_text() == "mode: plan\n"


def test_validate_names_every_problem_with_its_line(shell: Shell, file: Path) -> None:
    broken = "catalog:\n  deny:\n    - Read\n    - Bsh\npermissions:\n  allow: ['Bash(']\n  deny:\n    - Nope\n"
    file.write_text(broken)
    servers = write(own(shell), '{"mcpServers": {\n  "a": {"command": "a"},\n  "b": {"comand": 7}\n}}')

    done = shell.run("config", "validate")

    assert done.returncode == 1
    assert f"  {file}:4: catalog.deny.1: 'Bsh' names no tool; did you mean Bash" in done.stdout
    assert f"  {file}:6: permissions.allow.0: rule 'Bash(': the brackets do not close" in done.stdout
    assert f"  {file}:8: permissions.deny.0: rule 'Nope': names no tool" in done.stdout
    assert f"  {servers}:3: mcpServers.b: " in done.stdout
    (yaml, _) = json.loads(shell.run("config", "validate", "--json").stdout)
    assert [problem["line"] for problem in yaml["problems"]] == [6, 8, 4]

    file.write_text("mode: [\n")
    assert f"{file}:" in refused_out(shell, str(file))
    good = write(shell.folder / "good.yaml", "mode: plan\n")
    assert ok(shell, "config", "validate", str(good)) == f"{good}: no problems\n"
    assert "cannot be read" in refused_out(shell, "missing.yaml")


def refused_out(shell: Shell, file: str) -> str:
    done = shell.run("config", "validate", file)
    assert done.returncode == 1
    return done.stdout


def test_presets_are_listed_and_one_is_chosen(shell: Shell, file: Path) -> None:
    assert [one["name"] for one in json.loads(ok(shell, "config", "preset", "--json"))] == [
        "claude_code",
        "core",
        "read_only",
    ]
    ok(shell, "config", "preset", "read_only")
    assert "read_only\tyes" in ok(shell, "config", "preset")
    assert "allow" in file.read_text()
    ok(shell, "config", "preset", "--all")
    assert "allow" not in file.read_text()
    assert "did you mean core?" in refused(shell, "config", "preset", "cor")


def test_a_trusted_projects_file_stays_trusted_when_its_user_edits_it(shell: Shell) -> None:
    project = write(shell.folder / "goat-mcp.yaml", "mode: plan\n")

    assert "until you trust it" in ok(shell, "config", "set", "--project", "output.max_chars", "40000")
    trust = json.loads(shell.run("trust", ".", "--json").stdout)
    ok(shell, "trust", ".", "--yes", trust["sha256"])
    ok(shell, "config", "set", "--project", "output.max_chars", "50000")

    assert ok(shell, "config", "get", "output.max_chars") == "50000\n"
    assert shell.run("config", "get", "output.max_chars").stderr == f"from {project}:3\n"


def test_path_prints_the_files_that_are_read(shell: Shell, file: Path) -> None:
    found = {one["what"]: one for one in json.loads(ok(shell, "config", "path", "--json"))}

    assert found["settings"] == {"what": "settings", "path": str(file), "exists": True}
    assert found["servers"]["exists"] is False


def test_a_file_without_its_last_setting_is_one_that_servers_can_read(shell: Shell) -> None:
    ok(shell, "config", "set", "output.max_chars", "50000")
    ok(shell, "config", "unset", "output.max_chars")

    assert ok(shell, "config", "get", "output.max_chars") == "30000\n"
    ok(shell, "config", "validate")
    ok(shell, "config", "set", "output.max_chars", "50000")
    assert own(shell, "goat-mcp.yaml").read_text() == "# settings of goat-mcp\noutput:\n  max_chars: 50000\n"


def test_validate_reports_an_empty_file_which_no_server_reads(shell: Shell, file: Path) -> None:
    file.write_text("")

    assert "is empty" in shell.run("config", "validate").stdout


def test_a_file_that_a_project_names_is_trusted_as_it_was_when_the_settings_were_read(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that waits for the user to edit the settings may change it as soon as they are written."""
    monkeypatch.chdir(shell.folder)
    state = StateDirectory(shell.state / "own")
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(state.path))
    named = write(shell.folder / "tools" / "one.yaml", "harmless")
    project = write(shell.folder / "goat-mcp.yaml", "manifests: [tools]\n")
    found = find_project_file(shell.folder)
    assert found is not None
    TrustStore(state).trust(project, whole_project(found, path_keys()).sha256)

    edit = edited_settings(True, lambda text: text + "mode: plan\n")
    named.write_text("harmful")
    edit.write()

    say = project_say(shell.folder, TrustStore(state), path_keys())
    assert edit.is_trusted
    assert say is not None and not say.is_trusted


def test_of_commands_at_the_same_time_each_counts(shell: Shell) -> None:
    words = [f"Bash(cmd{number})" for number in range(6)]

    with ThreadPoolExecutor(len(words)) as pool:
        running = [pool.submit(shell.run, "rules", "deny", word) for word in words]

    assert [one.result().stderr for one in running] == [""] * len(words)
    assert sorted(json.loads(ok(shell, "config", "get", "permissions.deny", "--json"))["value"]) == words


def test_a_folder_that_cannot_be_made_is_named(shell: Shell) -> None:
    shell.state.mkdir()
    (shell.state / "config").symlink_to("/proc/nobody")

    for words in ("config set mode plan", "rules deny Bash", "add x --no-check -- true"):
        done = shell.run(*words.split())
        assert done.returncode == 1
        assert "cannot be made" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_project_whose_settings_file_is_a_link_has_no_other_file_edited(shell: Shell, file: Path) -> None:
    (shell.folder / "goat-mcp.yaml").symlink_to(file)
    before = file.read_text()

    for words in ("config set --project mode plan", "rules deny --project Bash", "disable --project Bash"):
        done = shell.run(*words.split())
        assert done.returncode == 1
        assert "is a symbolic link" in done.stderr
        assert "Traceback" not in done.stderr
    assert file.read_text() == before


def test_a_trusted_project_that_names_a_file_which_is_gone_is_edited_and_no_longer_trusted(shell: Shell) -> None:
    named = write(shell.folder / "servers.json", '{"mcpServers": {}}')
    write(shell.folder / "goat-mcp.yaml", "upstreams: [servers.json]\n")
    trust = json.loads(shell.run("trust", ".", "--json").stdout)
    ok(shell, "trust", ".", "--yes", trust["sha256"])
    named.unlink()

    assert "Traceback" not in shell.run("config", "set", "--project", "mode", "plan").stderr
    assert "mode: plan" in (shell.folder / "goat-mcp.yaml").read_text()


def test_the_short_form_of_approval_is_read_set_and_unset(shell: Shell, file: Path) -> None:
    ok(shell, "config", "set", "approval", "deny")

    assert yaml.safe_load(file.read_text())["approval"] == {"by": "deny"}
    assert ok(shell, "config", "get", "approval") == "deny\n"
    assert ok(shell, "config", "get", "approval.by") == "deny\n"

    ok(shell, "config", "set", "approval.wait_s", "5")
    ok(shell, "config", "unset", "approval")
    assert yaml.safe_load(file.read_text())["approval"] == {"wait_s": 5}


def test_a_file_with_the_short_form_takes_another_setting_of_approvals(shell: Shell, file: Path) -> None:
    write(file, "# mine\nmode: plan\napproval: deny  # nobody is here\n")
    assert shell.run("config", "get", "approval").stderr == f"from {file}:3\n"

    ok(shell, "config", "set", "approval.wait_s", "5")

    assert yaml.safe_load(file.read_text()) == {"mode": "plan", "approval": {"by": "deny", "wait_s": 5}}
    assert file.read_text().startswith("# mine\n")
    assert json.loads(ok(shell, "config", "get", "approval.wait_s", "--json"))["value"] == 5


def test_the_short_form_can_be_unset(shell: Shell, file: Path) -> None:
    write(file, "mode: plan\napproval: deny\n")

    ok(shell, "config", "unset", "approval")

    assert yaml.safe_load(file.read_text()) == {"mode": "plan"}
