"""`goat-mcp add`, `remove`, `enable`, `disable` and `restart`: what is written, shown and refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.terminal_runs import run_on_terminal
from tests.cli.terminal_session import CTRL_C, TerminalSession
from tests.cli.test_undo import Shell
from tests.quick_start import goat_command, script_command

WEATHER = Path(__file__).parents[2] / "examples" / "weather_stdio.py"
TOKEN = "ghp_abcdefghijklmnopqrstuvwx"


def own(shell: Shell, name: str = "upstreams.json") -> Path:
    return shell.state / "config" / "goat-mcp" / name


def servers(shell: Shell) -> Mapping[str, Any]:
    return json.loads(own(shell).read_text())["mcpServers"]


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def ok(shell: Shell, *words: str) -> str:
    done = shell.run(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(shell: Shell, *words: str, code: int = 1, by_model: bool = False) -> str:
    done = shell.run(*words, GOAT_MCP_CALL="1.call" if by_model else "")
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr


def test_add_writes_the_entry_starts_the_server_once_and_lists_its_tools(shell: Shell) -> None:
    command, *args = script_command(WEATHER)

    shown = ok(shell, "add", "weather", "--env", "UNITS=metric", "--", command, *args)

    assert servers(shell) == {"weather": {"command": command, "args": args, "env": {"UNITS": "metric"}}}
    assert "weather works: 3 tools: mcp__weather__list_towns" in shown
    assert "No goat-mcp is running: this counts from the next start on." in shown
    assert own(shell).stat().st_mode & 0o777 == 0o600


def test_add_keeps_the_layout_of_the_file_and_what_it_held_before(shell: Shell) -> None:
    text = '{\n    "mcpServers": {\n        "a": {"command": "a"}\n    },\n    "more": [1,  2]\n}\n'
    write(own(shell), text)

    ok(shell, "add", "maps", "https://maps.example.org/mcp", "-H", "X-Team: blue", "--no-check")

    entry = '"maps": {\n            "url": "https://maps.example.org/mcp",\n            "headers": {\n'
    entry += '                "X-Team": "blue"\n            }\n        }'
    assert own(shell).read_text() == text.replace('"a": {"command": "a"}', f'"a": {{"command": "a"}},\n        {entry}')
    assert own(shell, "upstreams.json.bak").read_text() == text


def test_a_server_that_does_not_start_stays_and_what_to_do_is_said(shell: Shell) -> None:
    told = refused(shell, "add", "no", "--", "/nowhere/server", code=4)

    assert "no: command_not_found: command '/nowhere/server'" in told
    assert "Install it, or write its absolute path" in told
    assert "The entry stays. Try again: goat-mcp doctor no; or: goat-mcp remove no" in told
    assert "no" in servers(shell)


def test_a_server_that_wants_a_login_is_named_with_the_command_for_it(shell: Shell) -> None:
    with refusing() as url:
        done = shell.run("add", "maps", url, "--json")

    assert done.returncode == 3
    check = json.loads(done.stdout)["check"]
    assert (check["ok"], check["reason_code"]) == (False, "auth_required")
    assert "goat-mcp auth login maps" in check["remedy"]
    assert servers(shell) == {"maps": {"url": url}}


@contextmanager
def refusing() -> Generator[str]:
    """The address of a server that answers 401 to everything."""

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_ctrl_c_ends_the_check_and_keeps_the_entry(shell: Shell) -> None:
    variables = {
        "HOME": str(shell.folder),
        "GOAT_MCP_STATE_DIR": str(shell.state),
        "XDG_CONFIG_HOME": str(shell.state / "config"),
    }

    with TerminalSession(
        goat_command("add", "slow", "--", "sleep", "600"), cwd=shell.folder, variables=variables
    ) as terminal:
        terminal.wait_for("slow: starting, to list its tools")
        terminal.type(CTRL_C)
        assert terminal.end() == 130

    assert "slow was not checked; the entry stays." in terminal.shown
    assert "Traceback" not in terminal.shown
    assert "slow" in servers(shell)


def test_a_plain_secret_is_noticed_and_never_shown(shell: Shell) -> None:
    done = shell.run("add", "git", "-e", f"TOKEN={TOKEN}", "--no-check", "--", "git-mcp")

    assert done.returncode == 0
    assert TOKEN not in done.stdout + done.stderr
    assert "TOKEN looks like a secret" in done.stderr
    assert "goat-mcp secret set git-token" in done.stderr
    assert "--replace --env TOKEN='${secret:git-token}'" in done.stderr


def test_on_a_terminal_a_plain_secret_can_be_stored_at_once(shell: Shell) -> None:
    variables = {
        "HOME": str(shell.folder),
        "GOAT_MCP_STATE_DIR": str(shell.state),
        "XDG_CONFIG_HOME": str(shell.state / "config"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }
    words = ("add", "maps", "https://maps.example.org/mcp", "-H", f"Authorization: Bearer {TOKEN}", "--no-check")

    with TerminalSession(goat_command(*words), cwd=shell.folder, variables=variables) as terminal:
        terminal.wait_for("Type yes:")
        terminal.type(b"yes\n")
        assert terminal.end() == 0

    assert servers(shell)["maps"]["headers"] == {"Authorization": "Bearer ${secret:maps-authorization}"}
    assert TOKEN not in terminal.shown
    assert "maps-authorization" in shell.run("secret", "list").stdout


def test_a_dry_run_shows_what_would_be_written_as_json_too(shell: Shell) -> None:
    document = json.loads(ok(shell, "add", "a", "--dry-run", "--json", "--", "a-server", "-v"))

    assert (document["changed"], document["check"], document["dry_run"]) == (False, None, True)
    assert '+      "args": ["-v"]' in document["diff"]
    assert not own(shell).exists()


def test_into_another_file_which_may_be_new(shell: Shell) -> None:
    ok(shell, "add", "a", "--no-check", "--into", "servers.json", "--", "./run", "x")

    entry = json.loads((shell.folder / "servers.json").read_text())["mcpServers"]["a"]
    assert entry == {"command": str(shell.folder / "run"), "args": ["x"]}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("my server", "https://x.example/mcp"), "is no name for a server"),
        (("a__b", "https://x.example/mcp"), "write a_b"),
        (("taken", "https://x.example/mcp"), "there is a server taken already"),
        (("x", "https://x.example/sse", "--transport", "sse"), "retired HTTP+SSE transport"),
        (("x", "https://x.example/mcp", "-e", "A=b"), "--env is for a command"),
        (("x", "https://x.example/mcp", "more"), "a URL takes no arguments"),
        (("x", "https://u:p@x.example/mcp"), "holds a user name or password"),
        (("x", "-e", "A", "--", "run"), "--env wants NAME=VALUE"),
        (("x", "npx", "-y", "pkg"), "write -- before that: goat-mcp add NAME -- COMMAND ARGS"),
        (("x", "localhost:3000/mcp"), "for an address write http://localhost:3000/mcp"),
        (("x", "maps.example.org/mcp"), "for an address write http://maps.example.org/mcp"),
    ],
)
def test_mistakes_of_add_are_named_and_write_nothing(shell: Shell, words: tuple[str, ...], told: str) -> None:
    before = '{"mcpServers": {"taken": {"command": "a"}}}'
    write(own(shell), before)

    assert told in refused(shell, "add", *words)
    assert own(shell).read_text() == before


def test_replace_takes_the_place_of_a_server(shell: Shell) -> None:
    write(own(shell), '{"mcpServers": {"a": {"command": "old", "timeout_s": 5}, "b": {"command": "b"}}}')

    ok(shell, "add", "a", "--replace", "--no-check", "--", "new")

    assert servers(shell) == {"b": {"command": "b"}, "a": {"command": "new"}}


def test_a_server_that_nobody_would_read_is_refused(shell: Shell) -> None:
    other = write(shell.folder / "other.json", '{"mcpServers": {}}')
    write(own(shell, "goat-mcp.yaml"), f"upstreams: {other}\n")

    told = refused(shell, "add", "a", "--", "run")

    assert "your settings name their own files of upstreams" in told
    assert f"--into {other}" in told


def test_remove_takes_servers_out_and_leaves_the_rest(shell: Shell) -> None:
    write(own(shell), '{\n  "mcpServers": {\n    "a": {"command": "a"},\n    "b": {"command": "b"}\n  }\n}\n')

    shown = ok(shell, "remove", "a")

    assert own(shell).read_text() == '{\n  "mcpServers": {\n    "b": {"command": "b"}\n  }\n}\n'
    assert '-    "a": {"command": "a"},' in shown
    assert "did you mean b?" in refused(shell, "remove", "bb")
    document = json.loads(ok(shell, "remove", "mcp__b", "--json"))
    assert document["removed"] == [{"name": "b", "file": str(own(shell))}]
    assert "there is none yet" in refused(shell, "remove", "b")


def test_disable_and_enable_switch_servers_tools_and_presets(shell: Shell) -> None:
    write(own(shell), '{"mcpServers": {"git.hub": {"command": "a"}}}')
    write(own(shell, "goat-mcp.yaml"), "# mine\ncatalog:\n  deny: [Edit]  # why\n")

    ok(shell, "disable", "git_hub", "Task", "mcp__git_hub__delete", "preset:read_only")

    assert servers(shell)["git.hub"]["disabled"] is True
    text = own(shell, "goat-mcp.yaml").read_text()
    assert text.startswith("# mine\ncatalog:\n  deny: [Edit, ") and text.endswith("]  # why\n")
    denied = yaml.safe_load(text)["catalog"]["deny"]
    assert denied == ["Edit", "Agent", "mcp__git_hub__delete", "preset:read_only"]

    ok(shell, "enable", "git.hub", "Agent", "mcp__git_hub__delete", "preset:read_only")

    assert servers(shell) == {"git.hub": {"command": "a"}}
    assert own(shell, "goat-mcp.yaml").read_text() == "# mine\ncatalog:\n  deny: [Edit]  # why\n"


def test_enable_says_what_keeps_a_tool_off_and_turns_toolsets_on(shell: Shell) -> None:
    write(own(shell, "goat-mcp.yaml"), "catalog:\n  deny: ['toolset:core']\n  allow: [Read]\n")

    assert "Bash stays off: catalog.deny has toolset:core" in refused(shell, "enable", "Bash")
    file = own(shell, "goat-mcp.yaml")
    file.write_text("catalog:\n  allow: [Read]\n  toolsets: [network, core]\n")
    ok(shell, "enable", "Bash", "NotebookEdit")

    chosen = yaml.safe_load(file.read_text())["catalog"]
    assert chosen == {"allow": ["Read", "Bash", "NotebookEdit"], "toolsets": ["network", "core", "notebook"]}
    assert f"{file} says so already." in ok(shell, "enable", "Bash")
    file.write_text("catalog:\n  deny: ['preset:core', Bash]\n")
    ok(shell, "enable", "preset:core", "Bash")
    assert yaml.safe_load(file.read_text()) == {"catalog": {"deny": []}}
    assert "read it at their next start" in shell.run("enable", "toolset:goa").stderr
    file.unlink()
    assert "enable toolset:goa" in refused(shell, "enable", "ssh_bash__exec")


def test_what_an_environment_variable_decides_is_said(shell: Shell) -> None:
    done = shell.run("enable", "Bash", GOAT_MCP_CATALOG__ALLOW='["Read"]')

    assert "Bash is still off here: catalog.allow of the environment decides" in done.stderr


def test_mistakes_of_disable_are_named(shell: Shell) -> None:
    write(own(shell), '{"mcpServers": {"Bash": {"command": "a"}}}')

    assert "did you mean Grep?" in refused(shell, "disable", "Grap")
    assert "Say which is meant: --server or --tool." in refused(shell, "disable", "Bash")
    assert "did you mean preset:core?" in refused(shell, "disable", "preset:cor")
    assert json.loads(ok(shell, "disable", "--tool", "Bash", "--json"))["switched"] == [
        {"kind": "tool", "name": "Bash", "file": str(own(shell, "goat-mcp.yaml"))}
    ]
    assert "disabled" not in servers(shell)["Bash"]


def test_a_file_that_cannot_be_edited_is_left_alone(shell: Shell) -> None:
    broken = write(own(shell, "broken.json"), '{"mcpServers": ')

    assert "broken.json: line 1, column 16" in refused(shell, "remove", "a", "--from", str(broken))
    assert broken.read_text() == '{"mcpServers": '

    odd = write(own(shell), '{"mcpServers": {"a": 7}}')
    assert "a is not an object" in refused(shell, "disable", "a")
    assert odd.read_text() == '{"mcpServers": {"a": 7}}'


def test_restart_without_a_running_server_says_so(shell: Shell) -> None:
    write(own(shell), '{"mcpServers": {"a": {"command": "a"}}}')

    assert "did you mean a?" in refused(shell, "restart", "aa")
    assert ok(shell, "restart", "a") == "No goat-mcp is running: nothing to do.\n"
    assert json.loads(ok(shell, "restart", "a", "--json")) == {"name": "a", "running": []}


@pytest.mark.parametrize(
    "words",
    [
        ("add", "a", "--", "run"),
        ("remove", "a"),
        ("enable", "Bash"),
        ("disable", "Bash"),
        ("restart", "a"),
        ("config", "set", "mode", "plan"),
        ("config", "unset", "mode"),
        ("config", "preset", "core"),
    ],
)
def test_a_command_that_a_model_runs_changes_nothing(shell: Shell, words: tuple[str, ...]) -> None:
    told = refused(shell, *words, by_model=True)

    assert "a command that a model runs cannot" in told
    assert not own(shell).parent.exists()


def test_at_80_columns_nothing_is_cut(shell: Shell) -> None:
    variables = {"XDG_CONFIG_HOME": str(shell.state / "config")}

    _, text = run_on_terminal(
        "add", "maps", "--no-check", "--", "/opt/servers/maps", cwd=shell.folder, variables=variables
    )

    lines = [line.rstrip() for line in text.splitlines()]
    assert '+      "command": "/opt/servers/maps"' in lines
    assert lines[-1] == "No goat-mcp is running: this counts from the next start on."
