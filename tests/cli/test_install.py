"""`goat-mcp install`: the written entry names its workspace and options; several hosts at once; what is printed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.cli.hosts.table import HOSTS
from tests.cli.desktop import CLAUDE_DESKTOP
from tests.cli.terminal_runs import COLUMNS, run_on_terminal
from tests.cli.test_call import run
from tests.cli.test_import import done, written

pytestmark = pytest.mark.e2e

DESKTOP = CLAUDE_DESKTOP
CURSOR = Path(".cursor/mcp.json")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def args_of(file: Path, root: str = "mcpServers", name: str = "goat") -> list[str]:
    args: list[str] = json.loads(file.read_text())[root][name]["args"]
    return args[args.index("serve") :]


def goats(file: Path) -> list[str]:
    return [name for name in json.loads(file.read_text())["mcpServers"] if "goat" in name]


def test_the_entry_names_workspaces_as_absolute_paths_and_the_options(tmp_path: Path, work: Path) -> None:
    written(tmp_path / ".config" / "goat-mcp" / "goat-mcp.yaml", "profiles: {careful: {}}\n")
    words = ("--workspace", "work", "-w", str(tmp_path / "work" / ".." / "state"), "--mode", "plan")
    (tmp_path / "state").mkdir(mode=0o700)

    shown = done("install", "claude-desktop", *words, "--preset", "core", "--profile", "careful", cwd=tmp_path).stdout

    assert args_of(tmp_path / DESKTOP) == [
        "serve",
        *("--workspace", str(work), "--workspace", str(tmp_path / "state")),
        *("--mode", "plan", "--preset", "core", "--profile", "careful"),
    ]
    assert shown.endswith("Quit Claude Desktop entirely and start it again.\n")
    assert f"Workspace: {work}, {tmp_path / 'state'}\n" in shown


def test_a_second_install_changes_our_entry_and_adds_none(tmp_path: Path, work: Path) -> None:
    before = '{\n  "mcpServers": {"a": {"command": "x"}}}'
    file = written(tmp_path / DESKTOP, before)
    done("install", "claude-desktop", "--workspace", str(work), cwd=tmp_path)

    changed = json.loads(done("install", "claude-desktop", "--mode", "plan", "--json", cwd=tmp_path).stdout)
    same = json.loads(done("install", "claude-desktop", "--mode", "plan", "--json", cwd=tmp_path).stdout)
    args = args_of(file)
    found = goats(file)
    done("eject", "claude-desktop", cwd=tmp_path)

    assert (changed["result"], changed["changed"], same["result"], same["changed"]) == (
        "changed",
        True,
        "already",
        False,
    )
    assert '"--mode", "plan"' in changed["diff"] and found == ["goat"]
    assert args == ["serve", "--workspace", str(work), "--mode", "plan"]
    assert file.read_text() == before


def test_a_users_own_entry_keeps_what_else_it_says(tmp_path: Path, work: Path) -> None:
    entry = {"command": "/no/such/goat-mcp", "args": ["serve", "-w", "/old", "--http", "x"], "env": {"K": "v"}}
    file = written(tmp_path / CURSOR, {"mcpServers": {"mine": entry}})
    before = file.read_bytes()

    done("install", "cursor", "--workspace", str(work), cwd=tmp_path)
    after = json.loads(file.read_text())["mcpServers"]["mine"]
    args = args_of(file, name="mine")
    done("eject", "cursor", cwd=tmp_path)

    assert goats(file) == [] and args == ["serve", "--workspace", str(work), "--http", "x"]
    assert after["env"] == {"K": "v"} and Path(after["command"]).is_file()
    assert file.read_bytes() == before


def test_uninstalling_takes_out_an_entry_that_was_there_before_and_that_we_changed(tmp_path: Path, work: Path) -> None:
    file = written(tmp_path / CURSOR, {"mcpServers": {"goat": {"command": "goat-mcp", "args": ["serve"]}}})
    done("install", "cursor", "--workspace", str(work), cwd=tmp_path)

    done("uninstall", "cursor", cwd=tmp_path)

    assert json.loads(file.read_text()) == {"mcpServers": {}}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--workspace", "wrok"), "did you mean work?"),
        (("--mode", "plann"), "there is no mode 'plann'; did you mean plan?"),
        (("--preset", "cor"), "there is no preset 'cor'; did you mean core?"),
        (("--profile", "x"), "there is no profile 'x'\n"),
        (("--workspace", "."), "as the workspace gives the tools everything that is yours"),
        (("--workspace", "/"), "as the workspace gives the tools everything that is yours"),
        (("--workspace", "/dev"), "/dev cannot be a root"),
    ],
)
def test_a_wrong_option_is_named_and_nothing_is_written(
    tmp_path: Path, work: Path, words: tuple[str, ...], problem: str
) -> None:
    ended = run("install", "cursor", *words, cwd=tmp_path)

    assert (ended.returncode, ended.stdout) == (1, "") and problem in ended.stderr
    assert not (tmp_path / CURSOR).exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "name a HOST"),
        (("--all", "cursor"), "name a HOST"),
        (("cursr",), "did you mean cursor"),
        (("--all",), "no host was found on this computer"),
    ],
)
def test_a_wrong_host_is_a_usage_error_with_the_next_step(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    ended = run("install", *words, "--json", cwd=tmp_path)

    error = json.loads(ended.stderr)["error"]
    assert (ended.returncode, ended.stdout) == (1, "") and problem in error["message"] and error["suggestion"]


NOTES = {
    "claude-desktop": "file tools will answer E_NO_WORKSPACE until you run: "
    "goat-mcp install claude-desktop --workspace DIR",
    "zed": "For one project: goat-mcp install zed --project DIR --workspace DIR",
    "cursor": "Cursor names the folders that are open in it: they are the workspace.",
    "codex": "Codex starts goat-mcp in your project's directory: that is the workspace",
}


@pytest.mark.parametrize("host", NOTES)
def test_without_a_terminal_and_a_workspace_the_output_says_what_will_happen(tmp_path: Path, host: str) -> None:
    shown = done("install", host, cwd=tmp_path).stdout
    named = json.loads(done("install", host, "--json", cwd=tmp_path).stdout)

    assert NOTES[host] in shown and NOTES[host] in named["workspace_note"]


def test_settings_that_name_a_workspace_need_none_in_the_entry(tmp_path: Path, work: Path) -> None:
    written(tmp_path / ".config" / "goat-mcp" / "goat-mcp.yaml", f"workspace: [{work}]\n")

    assert "E_NO_WORKSPACE" not in done("install", "claude-desktop", cwd=tmp_path).stdout


def test_on_a_terminal_the_workspace_is_asked_for_and_the_current_directory_is_the_default(
    tmp_path: Path, work: Path
) -> None:
    code, shown = run_on_terminal("install", "claude-desktop", cwd=work, home=tmp_path, typed="\n")

    assert code == 0 and args_of(tmp_path / DESKTOP) == ["serve", "--workspace", str(work)]
    assert "Workspace for Claude Desktop" in shown


def test_a_host_that_names_its_folders_gets_no_workspace_unless_the_user_types_one(tmp_path: Path, work: Path) -> None:
    run_on_terminal("install", "cursor", cwd=work, home=tmp_path, typed="\n")
    first = args_of(tmp_path / CURSOR)
    done("uninstall", "cursor", cwd=tmp_path)
    run_on_terminal("install", "cursor", cwd=tmp_path, typed="wrok\nwork\n")

    assert (first, args_of(tmp_path / CURSOR)) == (["serve"], ["serve", "--workspace", str(work)])


@pytest.mark.parametrize(
    ("typed", "code", "is_written"), [("yes\nyes\n", 0, True), ("yes\nno\n", 1, False), ("no\n", 1, False)]
)
def test_the_home_directory_needs_two_yeses(tmp_path: Path, typed: str, code: int, is_written: bool) -> None:
    ended, shown = run_on_terminal("install", "claude-desktop", "--workspace", "~", cwd=tmp_path, typed=typed)

    assert ended == code and "is your home directory" in " ".join(shown.split())
    assert (tmp_path / DESKTOP).exists() is is_written


def test_ctrl_c_at_the_question_writes_nothing(tmp_path: Path, work: Path) -> None:
    code, shown = run_on_terminal("install", "claude-desktop", cwd=work, home=tmp_path, interrupt_at="Workspace [")

    assert code == 130 and "Traceback" not in shown and not (tmp_path / DESKTOP).exists()


def test_all_goes_over_every_host_that_is_found_and_ends_with_what_happened_to_each(tmp_path: Path, work: Path) -> None:
    written(tmp_path / CURSOR, {"mcpServers": {}})
    written(tmp_path / ".gemini" / "settings.json", '{"a": 1,')
    (tmp_path / DESKTOP).parent.mkdir(parents=True)

    ended = run("install", "--all", "--workspace", str(work), cwd=tmp_path)
    again = json.loads(run("install", "--all", "--json", cwd=tmp_path).stdout)

    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-10:] == [
        f"Claude Desktop: added: {tmp_path / DESKTOP}",
        "  Quit Claude Desktop entirely and start it again.",
        f"  Workspace: {work}",
        f"Cursor: added: {tmp_path / CURSOR}",
        "  Reload the window of Cursor.",
        f"  Workspace: {work}",
        f"Gemini CLI: refused: {tmp_path / '.gemini' / 'settings.json'}: line 1, column 9: "
        "Expecting property name enclosed in double quotes",
        "  Fix the file, then: goat-mcp install gemini",
        "  By hand: goat-mcp install --print gemini",
        "Undo: goat-mcp uninstall HOST",
    ]
    assert [(one["host"], one["result"]) for one in again["hosts"]] == [
        ("claude-desktop", "already"),
        ("cursor", "already"),
        ("gemini", "refused"),
    ]


def test_several_hosts_at_80_columns(tmp_path: Path, work: Path) -> None:
    written(tmp_path / CURSOR, "{")

    code, shown = run_on_terminal(
        "install", "cursor", "codex", "--workspace", "work", cwd=tmp_path, variables={"NO_COLOR": "1"}
    )

    result = shown[shown.index("\nCodex: added") :]
    assert code == 1 and "Cursor: refused" in result
    assert "\n  Fix the file, then: goat-mcp install cursor" in result
    assert max(map(len, (line for line in result.splitlines() if "/" not in line))) <= COLUMNS
    assert tomllib.loads((tmp_path / ".codex" / "config.toml").read_text())["mcp_servers"]["goat"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--workspace", "", "cursor"), "goat-mcp: the name of the workspace is empty\n"),
        (("--all", "--print"), "goat-mcp: --print prints the entry of each HOST; name the hosts in place of --all\n"),
        (
            ("jetbrains",),
            "goat-mcp: JetBrains AI Assistant has no file that goat-mcp can edit\n",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    ended = run("install", *words, cwd=tmp_path)

    assert ended.returncode == 1 and ended.stderr.startswith(message)
    assert not (tmp_path / ".cursor").exists()


def test_two_commands_of_a_note_stand_on_lines_of_their_own(tmp_path: Path) -> None:
    lines = run("install", "zed", "kiro", cwd=tmp_path).stdout.splitlines()

    assert "  For one project: goat-mcp install zed --project DIR --workspace DIR" in lines
    assert [line for line in lines if line.count("goat-mcp install") > 1] == []


def test_where_nothing_is_written_no_undo_is_offered(tmp_path: Path) -> None:
    written(tmp_path / CURSOR, "[")

    assert "Undo" not in run("install", "--all", cwd=tmp_path).stdout


def test_a_dry_run_writes_nothing(tmp_path: Path, work: Path) -> None:
    shown = done("install", "cursor", "codex", "--workspace", str(work), "--dry-run", cwd=tmp_path).stdout

    assert "Nothing was written (--dry-run)." in shown and [path.name for path in tmp_path.iterdir()] == ["work"]


@pytest.mark.parametrize("host", [*HOSTS, "json"])
def test_the_entry_of_every_host_can_be_printed(tmp_path: Path, work: Path, host: str) -> None:
    document = json.loads(done("install", "--print", host, "--workspace", str(work), "--json", cwd=tmp_path).stdout)
    printed = done("install", "--print", host, "--workspace", str(work), cwd=tmp_path)

    assert str(work) in json.dumps(document["entry"]) and document["text"].strip("\n") == printed.stdout.strip("\n")
    assert printed.stderr.startswith(document["paste_into"])
    assert [path.name for path in tmp_path.iterdir()] == ["work"]


def test_what_is_pasted_beside_other_servers_has_servers_alone(tmp_path: Path, work: Path) -> None:
    printed = done("install", "--print", "continue", "--workspace", str(work), cwd=tmp_path)
    pasted = done("install", "--print", "jetbrains", "--workspace", str(work), cwd=tmp_path)

    assert printed.stdout.startswith("mcpServers:\n  - name: goat\n    command: ")
    assert pasted.stderr.startswith("Paste this into JetBrains AI Assistant: Settings | Tools | AI Assistant | ")


@pytest.mark.parametrize("command", ["import", "install"])
def test_the_help_lists_the_hosts_of_the_table(tmp_path: Path, command: str) -> None:
    shown = " ".join(done(command, "--help", cwd=tmp_path).stdout.split())

    names = shown.partition("HOST is one of ")[2].removesuffix(".").split(", ")
    assert names == [name for name, host in HOSTS.items() if command == "install" or not host.paste_into]


def test_the_generic_entry_is_what_most_hosts_read(tmp_path: Path, work: Path) -> None:
    tree: Any = json.loads(done("install", "--print", "json", "--workspace", str(work), cwd=tmp_path).stdout)

    assert [*tree] == ["mcpServers"] and tree["mcpServers"]["goat"]["args"][-2:] == ["--workspace", str(work)]
