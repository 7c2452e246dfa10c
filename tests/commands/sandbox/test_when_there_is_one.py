"""Where a sandbox is wanted although the settings do not say so (R-PROC-1, design D8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.commands.sandbox.options import SandboxWish
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.checked import settings_of
from goat_mcp.settings.settings import BrokenSettings
from goat_mcp.state.directory import StateDirectory


def wanted(folder: Path, *, serves_http: bool = False, **settings: Any) -> SandboxWish:
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
        ({}, SandboxWish.OFF),
        ({"mode": "acceptEdits"}, SandboxWish.OFF),
        ({"serves_http": True}, SandboxWish.AUTO),
        ({"mode": "bypassPermissions"}, SandboxWish.AUTO),
        ({"permissions": {"allow": ["Bash"]}}, SandboxWish.AUTO),
        ({"permissions": {"allow": ["Bash(npm run *)"]}}, SandboxWish.AUTO),
        ({"permissions": {"allow": ["Read"]}}, SandboxWish.OFF),
        ({"mode": "bypassPermissions", "sandbox": "off"}, SandboxWish.OFF),
        ({"serves_http": True, "sandbox": "required"}, SandboxWish.REQUIRED),
        ({"sandbox": False}, SandboxWish.OFF),
    ],
)
def test_it_is_wanted_where_commands_may_run_unasked(tmp_path: Path, settings: dict[str, Any], wish: str) -> None:
    assert wanted(tmp_path, **settings) == wish


@pytest.mark.parametrize("setting", [{"sandbox_read": ["relative"]}, {"sandbox_write": [""]}, {"sandbox": "on"}])
def test_a_setting_that_cannot_be_used_stops_the_start(setting: dict[str, Any]) -> None:
    with pytest.raises(BrokenSettings, match=next(iter(setting))):
        settings_of(setting, "the test")
