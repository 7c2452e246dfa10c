"""Where each host's file lies, on every platform. Source: hosts.md section 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.cli.hosts.host import Host, HostEnvironment
from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.core.platform import SystemName
from goat_mcp.core.wsl_paths import WslPaths
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
        "copilot-cli": "/home/me/.copilot/mcp-config.json",
        "junie": "/home/me/.junie/mcp/mcp.json",
        "kilo-cli": "/home/me/.config/kilo/kilo.json",
        "lm-studio": "/home/me/.lmstudio/mcp.json",
        "opencode": "/home/me/.config/opencode/opencode.json",
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
        "copilot-cli": "/Users/me/.copilot/mcp-config.json",
        "junie": "/Users/me/.junie/mcp/mcp.json",
        "kilo-cli": "/Users/me/.config/kilo/kilo.json",
        "lm-studio": "/Users/me/.lmstudio/mcp.json",
        "opencode": "/Users/me/.config/opencode/opencode.json",
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
        "copilot-cli": "C:/Users/me/.copilot/mcp-config.json",
        "junie": "C:/Users/me/.junie/mcp/mcp.json",
        "kilo-cli": "C:/Users/me/.config/kilo/kilo.json",
        "lm-studio": "C:/Users/me/.lmstudio/mcp.json",
        "opencode": "C:/Users/me/.config/opencode/opencode.json",
    },
}
HOMES: dict[SystemName, str] = {"linux": "/home/me", "macos": "/Users/me", "windows": "C:/Users/me"}


@pytest.mark.parametrize("platform", PLACES)
def test_each_hosts_file_is_where_its_vendor_says(platform: SystemName) -> None:
    machine = HostEnvironment(platform, Path(HOMES[platform]), {"APPDATA": ROAMING})

    found = {name: place for name, host in HOSTS.items() if (place := host.user) is not None}

    assert {name: str(machine.path(place)) for name, place in found.items()} == PLACES[platform]


@pytest.mark.parametrize("platform", HOMES)
@pytest.mark.parametrize("host", HOSTS.values(), ids=list(HOSTS))
def test_file_tools_do_not_change_the_file_of_any_host(platform: SystemName, host: Host) -> None:
    """What it names is started."""
    environment = HostEnvironment(platform, Path(HOMES[platform]), {"APPDATA": ROAMING})
    places = [environment.path(place) for place in (host.user, host.elsewhere) if place is not None]
    paths = [*map(str, places), *([f"/project/{host.project}"] if host.project else [])]

    assert [path for path in paths if protected_reason(path) is None] == []


def test_windows_files_seen_from_wsl_are_those_below_the_mounted_drive() -> None:
    """The same table: only the folder of the user is spelled another way, and variables are translated."""
    environ = {"APPDATA": "C:\\Users\\me\\AppData\\Roaming", "CODEX_HOME": "D:\\codex", "CLINE_DIR": "\\\\nas\\cline"}
    around = HostEnvironment("windows", Path("/mnt/c/Users/me"), environ, WslPaths("Ubuntu"))
    machine = HostEnvironment("linux", Path("/home/me"), {"CODEX_HOME": "/codex"}, WslPaths("Ubuntu"), around)

    found = {name: str(machine.user_file(host.on_windows())) for name, host in HOSTS.items() if host.user is not None}

    expected = {name: path.replace("C:/", "/mnt/c/") for name, path in PLACES["windows"].items()}
    assert found == {**expected, "codex": "/mnt/d/codex/config.toml"}
    assert [path for path in found.values() if protected_reason(path) is None and "/codex/" not in path] == []


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


@pytest.mark.parametrize("variables", [{}, {"LOCALAPPDATA": "local", "APPDATA": "roaming"}], ids=["home", "elsewhere"])
def test_a_packaged_claude_desktop_reads_its_own_appdata(tmp_path: Path, variables: dict[str, str]) -> None:
    environ = {name: str(tmp_path / folder) for name, folder in variables.items()}
    environment = HostEnvironment("windows", tmp_path, environ)
    local = tmp_path / "local" if variables else tmp_path / "AppData" / "Local"
    roaming = tmp_path / "roaming" if variables else tmp_path / "AppData" / "Roaming"
    packages = [local / "Packages" / name / "LocalCache" / "Roaming" / "Claude" for name in ("Claude_a", "Claude_b")]

    found = [environment.user_file(HOSTS["claude-desktop"])]
    for folder in packages:
        folder.mkdir(parents=True)
    found.append(environment.user_file(HOSTS["claude-desktop"]))
    packages[1].joinpath("claude_desktop_config.json").touch()
    found.append(environment.user_file(HOSTS["claude-desktop"]))

    folders = [roaming / "Claude", *packages]
    assert found == [folder / "claude_desktop_config.json" for folder in folders]
    assert environment.user_file(HOSTS["vscode"]) == roaming / "Code" / "User" / "mcp.json"
    assert [file for file in found if protected_reason(str(file)) is None] == []


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
    assert HostEnvironment("linux", tmp_path, {}).user_file(HOSTS["antigravity"].on_windows()) is None
    assert environment.user_file(HOSTS["jetbrains"]) is None
