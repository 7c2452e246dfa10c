"""Where the state and the configuration are on each system. They stay there: users have files in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.core import platform
from goat_mcp.state.directory import StateDirectory, config_folder

_VARIABLES = ("GOAT_MCP_STATE_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "APPDATA")


@pytest.mark.posix_only("its home and absolute paths are those of POSIX")
@pytest.mark.parametrize(
    ("system", "variables", "state", "config"),
    [
        ("linux", {}, "HOME/.local/state/goat-mcp", "HOME/.config/goat-mcp"),
        ("linux", {"XDG_STATE_HOME": "", "XDG_CONFIG_HOME": ""}, "HOME/.local/state/goat-mcp", "HOME/.config/goat-mcp"),
        ("linux", {"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"}, "/s/goat-mcp", "/c/goat-mcp"),
        ("linux", {"XDG_STATE_HOME": "/s", "GOAT_MCP_STATE_DIR": "/named"}, "/named", "HOME/.config/goat-mcp"),
        ("linux", {"GOAT_MCP_STATE_DIR": "~/named"}, "HOME/named", "HOME/.config/goat-mcp"),
        ("macos", {}, "HOME/Library/Application Support/goat-mcp", "HOME/.config/goat-mcp"),
        (
            "macos",
            {"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"},
            "HOME/Library/Application Support/goat-mcp",
            "/c/goat-mcp",
        ),
        ("macos", {"GOAT_MCP_STATE_DIR": "/named"}, "/named", "HOME/.config/goat-mcp"),
        ("windows", {}, "HOME/AppData/Local/goat-mcp", "HOME/AppData/Roaming/goat-mcp"),
        ("windows", {"LOCALAPPDATA": "/local", "APPDATA": "/roaming"}, "/local/goat-mcp", "/roaming/goat-mcp"),
        (
            "windows",
            {"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"},
            "HOME/AppData/Local/goat-mcp",
            "HOME/AppData/Roaming/goat-mcp",
        ),
        ("windows", {"GOAT_MCP_STATE_DIR": "/named"}, "/named", "HOME/AppData/Roaming/goat-mcp"),
    ],
)
def test_each_system_has_its_directories(
    system: str,
    variables: dict[str, str],
    state: str,
    config: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "SYSTEM", system)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    found = (StateDirectory.default().path, config_folder())

    assert [str(path).replace(str(tmp_path), "HOME") for path in found] == [state, config]
