"""Where each host's file lies, on every platform. Source: hosts.md section 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.cli.hosts.host import Host, HostEnvironment
from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.core.platform import SystemName
from goat_mcp.files.workspace.protected import protected_reason

MAC = "/Users/me/Library/Application Support"
ROAMING = "C:/Users/me/AppData/Roaming"
PLACES: dict[SystemName, dict[str, str]] = {
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
        "cline": "/home/me/.cline/data/settings/cline_mcp_settings.json",
        "roo": "/home/me/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        "kiro": "/home/me/.kiro/settings/mcp.json",
        "continue": "/home/me/.continue/config.yaml",
        "crush": "/home/me/.config/crush/crush.json",
        "qwen": "/home/me/.qwen/settings.json",
        "amp": "/home/me/.config/amp/settings.json",
        "factory": "/home/me/.factory/mcp.json",
        "antigravity": "/home/me/.gemini/config/mcp_config.json",
        "warp": "/home/me/.warp/.mcp.json",
        "augment": "/home/me/.augment/settings.json",
        "trae": "/home/me/.config/Trae/User/mcp.json",
    },
    "macos": {
        "claude-desktop": f"{MAC}/Claude/claude_desktop_config.json",
        "claude-code": "/Users/me/.claude.json",
        "cursor": "/Users/me/.cursor/mcp.json",
        "vscode": f"{MAC}/Code/User/mcp.json",
        "codex": "/Users/me/.codex/config.toml",
        "gemini": "/Users/me/.gemini/settings.json",
        "windsurf": "/Users/me/.codeium/windsurf/mcp_config.json",
        "zed": "/Users/me/.config/zed/settings.json",
        "goose": "/Users/me/.config/goose/config.yaml",
        "cline": "/Users/me/.cline/data/settings/cline_mcp_settings.json",
        "roo": f"{MAC}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        "kiro": "/Users/me/.kiro/settings/mcp.json",
        "continue": "/Users/me/.continue/config.yaml",
        "crush": "/Users/me/.config/crush/crush.json",
        "qwen": "/Users/me/.qwen/settings.json",
        "amp": "/Users/me/.config/amp/settings.json",
        "factory": "/Users/me/.factory/mcp.json",
        "antigravity": "/Users/me/.gemini/config/mcp_config.json",
        "warp": "/Users/me/.warp/.mcp.json",
        "augment": "/Users/me/.augment/settings.json",
        "trae": f"{MAC}/Trae/User/mcp.json",
    },
    "windows": {
        "claude-desktop": f"{ROAMING}/Claude/claude_desktop_config.json",
        "claude-code": "C:/Users/me/.claude.json",
        "cursor": "C:/Users/me/.cursor/mcp.json",
        "vscode": f"{ROAMING}/Code/User/mcp.json",
        "codex": "C:/Users/me/.codex/config.toml",
        "gemini": "C:/Users/me/.gemini/settings.json",
        "windsurf": "C:/Users/me/.codeium/windsurf/mcp_config.json",
        "zed": f"{ROAMING}/Zed/settings.json",
        "goose": f"{ROAMING}/Block/goose/config/config.yaml",
        "cline": "C:/Users/me/.cline/data/settings/cline_mcp_settings.json",
        "roo": f"{ROAMING}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        "kiro": "C:/Users/me/.kiro/settings/mcp.json",
        "continue": "C:/Users/me/.continue/config.yaml",
        "crush": "C:/Users/me/.config/crush/crush.json",
        "qwen": "C:/Users/me/.qwen/settings.json",
        "amp": "C:/Users/me/.config/amp/settings.json",
        "factory": "C:/Users/me/.factory/mcp.json",
        "antigravity": "C:/Users/me/.gemini/config/mcp_config.json",
        "warp": "C:/Users/me/.warp/.mcp.json",
        "augment": "C:/Users/me/.augment/settings.json",
        "trae": f"{ROAMING}/Trae/User/mcp.json",
    },
}
HOMES: dict[SystemName, str] = {"linux": "/home/me", "macos": "/Users/me", "windows": "C:/Users/me"}


@pytest.mark.parametrize("platform", PLACES)
def test_each_hosts_file_is_where_its_vendor_says(platform: SystemName) -> None:
    machine = HostEnvironment(platform, Path(HOMES[platform]), {"APPDATA": ROAMING})

    found = {name: place for name in PLACES[platform] if (place := HOSTS[name].user) is not None}

    assert {name: str(machine.path(place)) for name, place in found.items()} == PLACES[platform]


@pytest.mark.parametrize("platform", HOMES)
@pytest.mark.parametrize("host", HOSTS.values(), ids=list(HOSTS))
def test_file_tools_do_not_change_the_file_of_any_host(platform: SystemName, host: Host) -> None:
    """What it names is started."""
    environment = HostEnvironment(platform, Path(HOMES[platform]), {"APPDATA": ROAMING})
    places = [environment.path(place) for place in (host.user, host.elsewhere) if place is not None]
    paths = [*map(str, places), *([f"/project/{host.project}"] if host.project else [])]

    assert [path for path in paths if protected_reason(path) is None] == []


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

    found = HostEnvironment("windows", Path("C:/Users/me"), {}).path(place)

    assert str(found) == f"{ROAMING}/Claude/claude_desktop_config.json"


def test_a_file_that_some_versions_have_elsewhere_is_found_if_it_is_alone(tmp_path: Path) -> None:
    environment = HostEnvironment("linux", tmp_path, {})
    today = tmp_path / ".gemini" / "config" / "mcp_config.json"
    before = tmp_path / ".gemini" / "antigravity" / "mcp_config.json"

    found = [environment.user_file(HOSTS["antigravity"])]
    for file in (before, today):
        file.parent.mkdir(parents=True)
        file.write_text("{}")
        found.append(environment.user_file(HOSTS["antigravity"]))

    assert found == [today, before, today]
    assert environment.user_file(HOSTS["jetbrains"]) is None
