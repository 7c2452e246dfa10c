"""The hosts of an account as the page sees them: found, connected and disconnected, the change shown before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goat_mcp.cli.page_hosts import PageHosts
from goat_mcp.core.errors import ToolError
from goat_mcp.processes.process_guard import MARKER_VARIABLE
from goat_mcp.state.directory import StateDirectory
from tests.cli.desktop import CLAUDE_DESKTOP

CURSOR = Path(".cursor/mcp.json")
ELSEWHERE = ("APPDATA", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "GOAT_MCP_WINDOWS_HOME")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An account with Cursor in it, which starts a server of its own with a secret."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in (*ELSEWHERE, MARKER_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.setenv("APPDATA", str(tmp_path / ".config"))
    _write(
        tmp_path / CURSOR, '{"mcpServers": {"notes": {"command": "notes", "env": {"KEY": "sk-very-secret-text"}}}}\n'
    )
    (tmp_path / "work").mkdir()
    return tmp_path


@pytest.fixture
def hosts(home: Path) -> PageHosts:
    return PageHosts(StateDirectory(home / "state"))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_host_that_is_here_is_shown_with_its_file_and_its_other_servers(home: Path, hosts: PageHosts) -> None:
    (found,) = hosts.here()

    assert (found.name, found.title, found.file) == ("cursor", "Cursor", str(home / CURSOR))
    assert not found.connected and found.problem == "" and found.other_servers == 1


def test_a_plan_shows_the_change_without_secrets_and_writes_nothing(home: Path, hosts: PageHosts) -> None:
    before = (home / CURSOR).read_bytes()

    change = hosts.plan("connect", "cursor", str(home / "work"))

    assert "+" in change.diff and str(home / "work") in change.diff and "serve" in change.diff
    assert "sk-very-secret-text" not in change.diff
    assert change.workspace == f"Workspace: {home / 'work'}" and "Cursor" in change.after
    assert (home / CURSOR).read_bytes() == before


def test_what_was_shown_is_written_and_taken_out_again_byte_for_byte(home: Path, hosts: PageHosts) -> None:
    before = (home / CURSOR).read_bytes()
    workspace = str(home / "work")

    hosts.carry_out("connect", "cursor", workspace, hosts.plan("connect", "cursor", workspace).digest)
    (connected,) = hosts.here()
    entry = json.loads((home / CURSOR).read_text())["mcpServers"]["goat"]
    hosts.carry_out("disconnect", "cursor", "", hosts.plan("disconnect", "cursor").digest)
    (disconnected,) = hosts.here()

    assert entry["args"][-2:] == ["--workspace", workspace]
    assert connected.connected and connected.workspace == workspace and connected.other_servers == 1
    assert not disconnected.connected
    assert (home / CURSOR).read_bytes() == before


def test_a_file_that_was_changed_after_it_was_shown_stays(home: Path, hosts: PageHosts) -> None:
    shown = hosts.plan("connect", "cursor")
    _write(home / CURSOR, '{"mcpServers": {}}')

    with pytest.raises(ToolError, match="was changed after you looked at it"):
        hosts.carry_out("connect", "cursor", "", shown.digest)

    assert (home / CURSOR).read_text() == '{"mcpServers": {}}'


def test_another_workspace_than_the_one_shown_is_not_written(home: Path, hosts: PageHosts) -> None:
    before = (home / CURSOR).read_bytes()
    shown = hosts.plan("connect", "cursor", str(home / "work"))

    with pytest.raises(ToolError, match="was changed after you looked at it"):
        hosts.carry_out("connect", "cursor", "", shown.digest)

    assert (home / CURSOR).read_bytes() == before


@pytest.mark.parametrize(
    ("workspace", "why"),
    [("work", "is not a whole path"), ("~", "gives the tools everything that is yours"), ("/none", "not a directory")],
)
def test_a_workspace_that_the_command_refuses_is_refused(hosts: PageHosts, workspace: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        hosts.plan("connect", "cursor", workspace)


def test_a_file_that_cannot_be_read_and_an_entry_that_cannot_start_say_why(home: Path, hosts: PageHosts) -> None:
    _write(home / CURSOR, "{")
    entry = {"command": str(home / "gone" / "goat-mcp"), "args": ["serve"]}
    _write(home / CLAUDE_DESKTOP, json.dumps({"mcpServers": {"goat": entry}}))

    desktop, cursor = hosts.here()

    assert desktop.connected and f"starts {home / 'gone' / 'goat-mcp'}, which does not exist" in desktop.problem
    assert not cursor.connected and cursor.problem.startswith("its file ")


def test_a_process_that_a_model_has_started_writes_nothing(
    home: Path, hosts: PageHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (home / CURSOR).read_bytes()
    shown = hosts.plan("connect", "cursor")
    monkeypatch.setenv(MARKER_VARIABLE, "1")

    with pytest.raises(ToolError, match="a command that a model runs cannot"):
        hosts.carry_out("connect", "cursor", "", shown.digest)

    assert (home / CURSOR).read_bytes() == before
