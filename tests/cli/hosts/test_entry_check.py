"""What doctor finds in the hosts' files: entries of goat-mcp that cannot work, and files that cannot be read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.cli.hosts.entry_check import examine_host_files
from goat_mcp.cli.hosts.host import HostEnvironment
from goat_mcp.cli.hosts.own_entry import NO_OPTIONS, changed_entry
from goat_mcp.cli.hosts.table import HOSTS

OURS = {"command": sys.executable, "args": ["-m", "goat_mcp", "serve"]}
FILES = {
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
}


def found(home: Path, *, has_workspace: bool = False) -> list[tuple[str, str, str]]:
    environment = HostEnvironment("linux", home, {})
    findings = examine_host_files(environment, has_workspace=has_workspace).findings
    return [(finding.id, Path(finding.about).name, finding.severity) for finding in findings]


def write(home: Path, host: str, content: Any) -> None:
    file = home / FILES[host]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps({"mcpServers": content}))


NO_WORKSPACE = [("host_entry_workspace", "claude-desktop", "warning")]


def test_an_entry_without_a_workspace_is_found_where_the_host_names_none(tmp_path: Path) -> None:
    write(tmp_path, "claude-desktop", {"goat": OURS, "other": {"command": "x"}})
    write(tmp_path, "cursor", {"goat": OURS})
    write(tmp_path, "codex", f'[mcp_servers.goat]\ncommand = "{sys.executable}"\nargs = ["-m", "goat_mcp"]\n')

    assert found(tmp_path) == NO_WORKSPACE
    assert found(tmp_path, has_workspace=True) == []


@pytest.mark.parametrize(
    "more",
    [
        {"args": [*OURS["args"], "--workspace", "/src"]},
        {"args": [*OURS["args"], "--workspace=/src"]},
        {"args": [*OURS["args"], "-w", "/src"]},
        {"args": [*OURS["args"], "--config", "/c.yaml"]},
        {"env": {"GOAT_MCP_WORKSPACE": "/src"}},
        {"disabled": True},
    ],
)
def test_an_entry_that_names_a_workspace_or_is_off_is_fine(tmp_path: Path, more: dict[str, Any]) -> None:
    write(tmp_path, "claude-desktop", {"goat": {**OURS, **more}})

    assert found(tmp_path) == []


def test_of_two_entries_each_gets_a_fix_that_works_for_it(tmp_path: Path) -> None:
    write(tmp_path, "claude-desktop", {"goat": OURS, "g2": OURS})

    fixes = [
        one.fix for one in examine_host_files(HostEnvironment("linux", tmp_path, {}), has_workspace=False).findings
    ]

    assert fixes == [
        "Name one: goat-mcp install claude-desktop --workspace DIR",
        "Add --workspace DIR to the arguments of g2 in that file, or take g2 out.",
    ]


def test_a_command_that_is_gone_must_be_fixed(tmp_path: Path) -> None:
    write(tmp_path, "cursor", {"goat": {"command": str(tmp_path / "gone" / "goat-mcp"), "args": ["serve"]}})

    assert found(tmp_path) == [("host_entry_command", "cursor", "error")]


def test_a_file_that_uvx_would_start_and_that_is_gone_must_be_fixed_and_install_does_it(tmp_path: Path) -> None:
    wheel = tmp_path / "goat_mcp-0.1.0-py3-none-any.whl"
    wheel.touch()
    # Any program will do for uvx: it is not started.
    uvx = {"command": sys.executable, "args": ["--from", str(wheel), "goat-mcp", "serve", "--mode", "plan"]}
    write(tmp_path, "cursor", {"goat": uvx})
    assert found(tmp_path) == []

    wheel.unlink()

    (finding,) = examine_host_files(HostEnvironment("linux", tmp_path, {}), has_workspace=False).findings
    assert f"with {wheel}, which does not exist" in finding.detail
    again = changed_entry(HOSTS["cursor"], uvx, NO_OPTIONS)
    assert str(wheel) not in again["args"] and again["args"][-3:] == ["serve", "--mode", "plan"]


def test_a_file_that_cannot_be_read_is_found_and_the_others_are_looked_at(tmp_path: Path) -> None:
    write(tmp_path, "cursor", '{"mcpServers": ')
    write(tmp_path, "codex", "[broken")
    write(tmp_path, "claude-desktop", {"goat": OURS})

    assert found(tmp_path) == [
        ("host_file", "mcp.json", "warning"),
        ("host_file", "config.toml", "warning"),
        *NO_WORKSPACE,
    ]
    examined = examine_host_files(HostEnvironment("linux", tmp_path, {}), has_workspace=True)
    assert examined.count == 3
    assert [one.detail.startswith(str(tmp_path)) for one in examined.findings] == [False, False]  # `about` names it
