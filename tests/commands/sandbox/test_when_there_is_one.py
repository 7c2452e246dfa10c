"""Where a sandbox is wanted although the settings do not say so (R-PROC-1, design D8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.commands.sandbox.options import SandboxMode
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import BrokenSettings, settings_of
from goat_mcp.state.directory import StateDirectory


def wanted(folder: Path, *, serves_http: bool = False, **settings: Any) -> SandboxMode:
    gateway = Gateway(
        settings_of({"workspace": [str(folder)], **settings}, "the test"),
        approval=Approval.ELICIT if serves_http else Approval.HOST,
        serves_http=serves_http,
        state=StateDirectory(folder / "state"),
    )
    return gateway.services.sandbox().wanted("local", "local")


@pytest.mark.parametrize(
    ("settings", "wish"),
    [
        ({}, SandboxMode.OFF),
        ({"mode": "acceptEdits"}, SandboxMode.OFF),
        ({"serves_http": True}, SandboxMode.AUTO),
        ({"mode": "bypassPermissions"}, SandboxMode.AUTO),
        ({"permissions": {"allow": ["Bash"]}}, SandboxMode.AUTO),
        ({"permissions": {"allow": ["Bash(npm run *)"]}}, SandboxMode.AUTO),
        ({"permissions": {"allow": ["Read"]}}, SandboxMode.OFF),
        ({"mode": "bypassPermissions", "sandbox": "off"}, SandboxMode.OFF),
        ({"serves_http": True, "sandbox": "required"}, SandboxMode.REQUIRED),
        ({"sandbox": False}, SandboxMode.OFF),
    ],
)
def test_it_is_wanted_where_commands_may_run_unasked(tmp_path: Path, settings: dict[str, Any], wish: str) -> None:
    assert wanted(tmp_path, **settings) == wish


@pytest.mark.parametrize("setting", [{"sandbox_read": ["relative"]}, {"sandbox_write": [""]}, {"sandbox": "on"}])
def test_a_setting_that_cannot_be_used_stops_the_start(setting: dict[str, Any]) -> None:
    with pytest.raises(BrokenSettings, match=next(iter(setting))):
        settings_of(setting, "the test")
