"""Status says what limits the processes of a command, and if nothing does (R-PROC-8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import status as command
from goat_mcp.core import platform
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.processes.bash_options import BashOptions
from goat_mcp.processes.pids_cgroup import OwnCgroup, PidsCgroups
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory


def no_cgroup() -> OwnCgroup:
    raise OSError(30, "Read-only file system", "/sys/fs/cgroup/pids")


class Possible(PidsCgroups):
    @property
    def why_not(self) -> str:
        return ""


@pytest.mark.linux_only("cgroups are")
@pytest.mark.parametrize(
    ("cgroups", "max_processes", "kind", "reason"),
    [
        (PidsCgroups(is_needed=lambda: False), 10, "rlimit", ""),
        (Possible(is_needed=lambda: True), 10, "cgroup", ""),
        (
            PidsCgroups(own=no_cgroup, is_needed=lambda: True),
            10,
            "none",
            "goat-mcp runs as root and can make no cgroup: /sys/fs/cgroup/pids: Read-only file system",
        ),
        (Possible(is_needed=lambda: True), 0, "none", "bash.max_processes is 0"),
    ],
    ids=["an ordinary user", "root", "f13_20_process_limit root without cgroups", "not wanted"],
)
def test_what_limits_the_processes_of_a_command_is_in_status(
    tmp_path: Path,
    cgroups: PidsCgroups,
    max_processes: int,
    kind: str,
    reason: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("goat_mcp.processes.pids_cgroup.PidsCgroups", lambda: cgroups)
    settings = Settings(bash=BashOptions(max_processes=max_processes), workspace=(tmp_path,))
    gateway = Gateway(settings, approval=Approval.HOST, state=StateDirectory(tmp_path / "state"))

    document: dict[str, Any] = gateway.status.document()
    command._print(document, "head", {})  # pyright: ignore[reportPrivateUsage]

    assert document["process_limit"] == {"kind": kind, "reason": reason}
    says_it = "the number of processes of a command is not limited" in capsys.readouterr().out
    assert says_it == (kind == "none")


def test_a_system_without_cgroups_limits_no_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "HAS_CGROUPS", False)
    gateway = Gateway(Settings(workspace=(tmp_path,)), approval=Approval.HOST, state=StateDirectory(tmp_path / "state"))

    document: dict[str, Any] = gateway.status.document()
    command._print(document, "head", {})  # pyright: ignore[reportPrivateUsage]

    reason = "this system counts all processes of a user, never those of a command"
    assert document["process_limit"] == {"kind": "none", "reason": reason}
    assert f"not limited: {reason}" in capsys.readouterr().out
