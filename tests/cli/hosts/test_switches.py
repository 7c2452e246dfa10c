"""What a host does not start is not started by being imported: lists of names, approvals, trusted folders. CFG-2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.cli.hosts.host import HostEnvironment
from goat_mcp.cli.hosts.importing import carry_out, plan_import
from goat_mcp.cli.hosts.merging import ImportOutcome
from goat_mcp.cli.hosts.sources import Source, source_from, sources_of
from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import StateDirectory

SERVERS = {"mcpServers": {name: {"command": name} for name in ("first", "second", "third")}}


def written(file: Path, content: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def brought(home: Path, host: str, project: Path | None = None, sources: list[Source] | None = None) -> dict[str, str]:
    """Import all; for each server that came switched off, the reason that was told. The others must not be disabled."""
    environment = HostEnvironment("linux", home, {})
    into = home / "upstreams.json"
    given = sources or [found for found in sources_of(HOSTS[host], environment, project) if found.file.entries]
    plan = plan_import(given, into, environment, move=False)
    carry_out(plan, StateDirectory(home / "state"))
    entries = json.loads(into.read_text())["mcpServers"]
    off = {name for name, entry in entries.items() if entry.get("disabled") is True}
    servers = [server for one in plan.sources for server in one.servers]
    assert all(server.outcome is ImportOutcome.IMPORTED for server in servers)
    told = {server.name: server.notes[0] for server in servers if server.notes and "disabled: true" in server.notes[0]}
    assert set(told) == off
    return {
        name: text.removeprefix("disabled: true, since it ").partition("; take that out in your file")[0]
        for name, text in told.items()
    }


@pytest.mark.parametrize(
    ("settings", "off"),
    [
        ({"excluded": ["se*"]}, {"second": "is excluded in Qwen Code (mcp.excluded)"}),
        ({"allowed": ["?irst", "second"]}, {"third": "is not among those that Qwen Code may start (mcp.allowed)"}),
        ({"allowed": []}, {}),
        ({"excluded": ["[f]irst"]}, {}),
    ],
)
def test_what_qwen_code_may_not_start_comes_switched_off(
    tmp_path: Path, settings: dict[str, Any], off: dict[str, str]
) -> None:
    written(tmp_path / ".qwen" / "settings.json", {**SERVERS, "mcp": settings})

    assert brought(tmp_path, "qwen") == off


def test_the_users_lists_of_qwen_code_count_for_a_project(tmp_path: Path) -> None:
    written(tmp_path / ".qwen" / "settings.json", {"mcp": {"excluded": ["first"]}})
    project = tmp_path / "project"
    written(project / ".qwen" / "settings.json", SERVERS)

    assert set(brought(tmp_path, "qwen", project)) == {"first"}


@pytest.mark.parametrize(
    ("settings", "off"),
    [
        ({"mcp": {"excluded": ["Second"]}}, ["second"]),
        ({"mcp": {"allowed": ["second"]}}, ["first", "third"]),
        ({"mcp": {"allowed": []}}, []),
        ({"mcp": {"allowed": ["first", "second"], "excluded": ["first"]}}, ["first", "third"]),
        ({"excludeMCPServers": ["first"]}, ["first"]),
        ({"allowMCPServers": ["first"]}, ["second", "third"]),
    ],
)
def test_what_gemini_cli_may_not_start_comes_switched_off(
    tmp_path: Path, settings: dict[str, Any], off: list[str]
) -> None:
    written(tmp_path / ".gemini/settings.json", {**SERVERS, **settings})

    assert [*brought(tmp_path, "gemini")] == off


def test_what_was_disabled_by_gemini_mcp_disable_comes_switched_off(tmp_path: Path) -> None:
    written(tmp_path / ".gemini/settings.json", SERVERS)
    written(tmp_path / ".gemini/mcp-server-enablement.json", {"second": {"enabled": False}})

    assert brought(tmp_path, "gemini") == {"second": "is switched off in Gemini CLI (gemini mcp disable)"}


def test_the_users_lists_of_gemini_cli_count_for_a_projects_servers(tmp_path: Path) -> None:
    written(tmp_path / ".gemini/settings.json", {"mcp": {"excluded": ["first"]}})
    written(tmp_path / "app/.gemini/settings.json", SERVERS)

    assert [*brought(tmp_path, "gemini", tmp_path / "app")] == ["first"]


@pytest.mark.parametrize(
    ("folder", "level", "is_off"),
    [
        ("", "", True),
        ("app", "TRUST_FOLDER", False),
        ("app/other", "TRUST_PARENT", False),
        ("app", "DO_NOT_TRUST", True),
        ("other", "TRUST_FOLDER", True),
    ],
)
def test_the_servers_of_a_project_that_gemini_cli_does_not_trust_come_switched_off(
    tmp_path: Path, folder: str, level: str, is_off: bool
) -> None:
    written(tmp_path / ".gemini/settings.json", {"security": {"folderTrust": {"enabled": True}}})
    written(tmp_path / ".gemini/trustedFolders.json", {str(tmp_path / folder): level})
    written(tmp_path / "app/.gemini/settings.json", SERVERS)

    assert bool(brought(tmp_path, "gemini", tmp_path / "app")) is is_off


class ClaudeProject:
    def __init__(self, home: Path) -> None:
        self.home, self.folder = home, home / "app"
        written(self.folder / ".mcp.json", SERVERS)

    def state(self, **entry: Any) -> None:
        written(self.home / ".claude.json", {"projects": {str(self.folder): entry}})

    def settings(self, name: str, **content: Any) -> None:
        written(self.home / name, content)

    def brought(self) -> dict[str, str]:
        return brought(self.home, "claude-code", self.folder)


def test_a_projects_servers_that_claude_code_has_not_been_told_to_start_come_switched_off(tmp_path: Path) -> None:
    why = "was not approved in Claude Code yet"

    assert ClaudeProject(tmp_path).brought() == {"first": why, "second": why, "third": why}


APPROVALS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "state": ("", {"enabledMcpjsonServers": ["first"]}, ["second", "third"]),
    "local": ("app/.claude/settings.local.json", {"enabledMcpjsonServers": ["first"]}, ["second", "third"]),
    "committed": ("app/.claude/settings.json", {"enableAllProjectMcpServers": True}, []),
    "user": (".claude/settings.json", {"enableAllProjectMcpServers": True}, []),
}


@pytest.mark.parametrize(("name", "content", "off"), APPROVALS.values(), ids=list(APPROVALS))
def test_what_was_approved_in_claude_code_comes_as_it_is(
    tmp_path: Path, name: str, content: dict[str, Any], off: list[str]
) -> None:
    project = ClaudeProject(tmp_path)
    project.state(hasTrustDialogAccepted=True, **({} if name else content))
    if name:
        project.settings(name, **content)

    assert [*project.brought()] == off


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_a_repository_that_is_not_trusted_cannot_approve_its_own_servers(tmp_path: Path, name: str) -> None:
    project = ClaudeProject(tmp_path)
    project.settings(f"app/.claude/{name}", enableAllProjectMcpServers=True, enabledMcpjsonServers=["first"])

    assert [*project.brought()] == ["first", "second", "third"]


@pytest.mark.parametrize(
    "name", ["", ".claude/settings.json", "app/.claude/settings.json", "app/.claude/settings.local.json"]
)
def test_what_was_rejected_in_claude_code_comes_switched_off_whatever_approves_it(tmp_path: Path, name: str) -> None:
    project = ClaudeProject(tmp_path)
    rejected = {"disabledMcpjsonServers": ["second"]}
    project.state(enableAllProjectMcpServers=True, **({} if name else rejected))
    if name:
        project.settings(name, **rejected)

    assert project.brought() == {"second": "was rejected in Claude Code (disabledMcpjsonServers)"}


def test_a_servers_own_switch_in_claude_code_counts_for_the_projects_own_entries_too(tmp_path: Path) -> None:
    project = ClaudeProject(tmp_path)
    project.state(
        enabledMcpjsonServers=["first", "second", "third"],
        disabledMcpServers=["first", "mine"],
        mcpServers={"mine": {"command": "mine"}, "other": {"command": "other"}},
    )

    why = "is switched off in Claude Code (disabledMcpServers)"
    assert project.brought() == {"first": why, "mine": why}


def test_a_named_mcp_json_is_asked_for_the_approvals_of_its_folder(tmp_path: Path) -> None:
    project = ClaudeProject(tmp_path)
    project.state(enabledMcpjsonServers=["first"])
    source = source_from(project.folder / ".mcp.json", None, None)

    assert [*brought(tmp_path, "claude-code", sources=[source])] == ["second", "third"]


@pytest.mark.parametrize(
    ("rule", "off"),
    [
        ({"serverName": "first"}, ["first"]),
        ({"serverCommand": ["run", "it"]}, ["second"]),
        ({"serverCommand": ["run"]}, ["first"]),
        ({"serverUrl": "https://*.example/*"}, ["third"]),
        ({"serverUrl": "https://[h].example/*"}, []),
    ],
)
@pytest.mark.parametrize("of_a_project", [False, True], ids=["user", "project"])
def test_what_is_denied_in_claude_code_comes_switched_off(
    tmp_path: Path, rule: dict[str, Any], off: list[str], of_a_project: bool
) -> None:
    servers = {
        "first": {"command": "run"},
        "second": {"command": "run", "args": ["it"]},
        "third": {"type": "http", "url": "https://h.example/mcp"},
    }
    if of_a_project:
        project = ClaudeProject(tmp_path)
        written(project.folder / ".mcp.json", {"mcpServers": servers})
        project.state(enableAllProjectMcpServers=True)
        project.settings("app/.claude/settings.json", deniedMcpServers=[rule])
    else:
        written(tmp_path / ".claude.json", {"mcpServers": servers})
        written(tmp_path / ".claude/settings.json", {"deniedMcpServers": [rule, "x", {}]})

    came_off = brought(tmp_path, "claude-code", tmp_path / "app" if of_a_project else None)

    assert came_off == dict.fromkeys(off, "is denied in Claude Code (deniedMcpServers)")


def test_what_claude_code_starts_everywhere_comes_as_it_is(tmp_path: Path) -> None:
    projects = {"/app": {"disabledMcpServers": ["first"]}, "/b": {}, "/c": {"disabledMcpServers": ["first", "x"]}}
    written(tmp_path / ".claude.json", {**SERVERS, "projects": projects})
    (source,) = sources_of(HOSTS["claude-code"], HostEnvironment("linux", tmp_path, {}))

    assert brought(tmp_path, "claude-code") == {}
    (plan,) = plan_import([source], tmp_path / "other.json", HostEnvironment("linux", tmp_path, {}), move=False).sources
    assert [server.notes for server in plan.servers] == [
        ("switched off in Claude Code for /app, /c; goat-mcp starts it for every project",),
        (),
        (),
    ]


@pytest.mark.parametrize(("folder", "is_off"), [("app", False), ("", False), ("other", True)])
def test_the_servers_of_a_project_that_codex_does_not_trust_come_switched_off(
    tmp_path: Path, folder: str, is_off: bool
) -> None:
    (tmp_path / ".git").mkdir()
    written(tmp_path / ".codex/config.toml", f'[projects."{tmp_path / folder}"]\ntrust_level = "trusted"\n')
    written(tmp_path / "app/.codex/config.toml", '[mcp_servers.first]\ncommand = "first"\n')

    assert bool(brought(tmp_path, "codex", tmp_path / "app")) is is_off


@pytest.mark.parametrize("name", ["settings.json", "config.json"])
def test_what_is_switched_off_in_copilot_cli_comes_switched_off(tmp_path: Path, name: str) -> None:
    written(tmp_path / ".copilot/mcp-config.json", SERVERS)
    written(tmp_path / ".copilot" / name, {"disabledMcpServers": ["third"]})

    assert brought(tmp_path, "copilot-cli") == {"third": "is switched off in Copilot CLI (disabledMcpServers)"}


@pytest.mark.parametrize("switch", [{"disabled": True}, {"enabled": False}], ids=["disabled", "enabled"])
def test_a_switch_inside_an_entry_is_told_too(tmp_path: Path, switch: dict[str, bool]) -> None:
    written(tmp_path / ".codeium/windsurf/mcp_config.json", {"mcpServers": {"first": {"command": "x", **switch}}})

    assert brought(tmp_path, "windsurf") == {"first": "is switched off in Windsurf"}


def test_settings_that_cannot_be_read_are_refused_and_named(tmp_path: Path) -> None:
    project = ClaudeProject(tmp_path)
    project.settings("app/.claude/settings.local.json")
    (project.folder / ".claude/settings.local.json").write_text("{")

    with pytest.raises(ToolError, match=r"settings\.local\.json") as refused:
        project.brought()

    assert refused.value.code is ErrorCode.CONFIG
