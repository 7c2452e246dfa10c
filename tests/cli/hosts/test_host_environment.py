"""Where each host's file lies, on every platform. Source: hosts.md section 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.cli.hosts.host import HostEnvironment
from goat_mcp.cli.hosts.table import HOSTS

MAC = "/Users/me/Library/Application Support"
ROAMING = "C:/Users/me/AppData/Roaming"
PLACES = {
    "linux": {
        "claude-desktop": "/home/me/.config/Claude/claude_desktop_config.json",
        "claude-code": "/home/me/.claude.json",
        "cursor": "/home/me/.cursor/mcp.json",
        "vscode": "/home/me/.config/Code/User/mcp.json",
        "codex": "/home/me/.codex/config.toml",
        "gemini": "/home/me/.gemini/settings.json",
        "windsurf": "/home/me/.codeium/windsurf/mcp_config.json",
        "zed": "/home/me/.config/zed/settings.json",
        "goose": "/home/me/.config/goose/config.yaml",
    },
    "darwin": {
        "claude-desktop": f"{MAC}/Claude/claude_desktop_config.json",
        "claude-code": "/Users/me/.claude.json",
        "cursor": "/Users/me/.cursor/mcp.json",
        "vscode": f"{MAC}/Code/User/mcp.json",
        "codex": "/Users/me/.codex/config.toml",
        "gemini": "/Users/me/.gemini/settings.json",
        "windsurf": "/Users/me/.codeium/windsurf/mcp_config.json",
        "zed": "/Users/me/.config/zed/settings.json",
        "goose": "/Users/me/.config/goose/config.yaml",
    },
    "win32": {
        "claude-desktop": f"{ROAMING}/Claude/claude_desktop_config.json",
        "claude-code": "C:/Users/me/.claude.json",
        "cursor": "C:/Users/me/.cursor/mcp.json",
        "vscode": f"{ROAMING}/Code/User/mcp.json",
        "codex": "C:/Users/me/.codex/config.toml",
        "gemini": "C:/Users/me/.gemini/settings.json",
        "windsurf": "C:/Users/me/.codeium/windsurf/mcp_config.json",
        "zed": f"{ROAMING}/Zed/settings.json",
        "goose": f"{ROAMING}/Block/goose/config/config.yaml",
    },
}
HOMES = {"linux": "/home/me", "darwin": "/Users/me", "win32": "C:/Users/me"}


@pytest.mark.parametrize("platform", PLACES)
def test_each_hosts_file_is_where_its_vendor_says(platform: str) -> None:
    machine = HostEnvironment(platform, Path(HOMES[platform]), {"APPDATA": ROAMING})

    found = {name: place for name in PLACES[platform] if (place := HOSTS[name].user) is not None}

    assert {name: str(machine.path(place)) for name, place in found.items()} == PLACES[platform]


def test_variables_that_move_a_hosts_files_count() -> None:
    environ = {"CODEX_HOME": "/codex", "CLAUDE_CONFIG_DIR": "/claude", "XDG_CONFIG_HOME": "/xdg"}
    machine = HostEnvironment("linux", Path("/home/me"), environ)

    places = {name: HOSTS[name].user for name in ("codex", "claude-code", "claude-desktop", "vscode")}

    assert {name: str(machine.path(place)) for name, place in places.items() if place} == {
        "codex": "/codex/config.toml",
        "claude-code": "/claude/.claude.json",
        "claude-desktop": "/xdg/Claude/claude_desktop_config.json",
        "vscode": "/xdg/Code/User/mcp.json",
    }


def test_without_appdata_it_is_below_the_home() -> None:
    place = HOSTS["claude-desktop"].user
    assert place is not None

    found = HostEnvironment("win32", Path("C:/Users/me"), {}).path(place)

    assert str(found) == f"{ROAMING}/Claude/claude_desktop_config.json"
