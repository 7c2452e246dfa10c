"""What this system offers and lacks is in `status`, `goat://status` and `doctor`, and asked by these alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.commands.sandbox.options import SandboxMode
from goat_mcp.commands.sandbox.sandbox import SandboxState
from goat_mcp.core import platform
from goat_mcp.files.workspace.beneath import Kernel
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.gateway.status import system_features as module
from goat_mcp.gateway.status.doctor import exit_status, sandbox_findings, system_findings
from goat_mcp.gateway.status.system_features import SystemFeature, summary, system_features, table
from goat_mcp.processes.linux_landlock import Landlock
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.cli.test_call import run

BY_ATTRIBUTE = {
    "HAS_DIRECTORY_DESCRIPTORS": "directory descriptors",
    "HAS_PATH_DESCRIPTORS": "path descriptors (O_PATH)",
    "HAS_PIDFD": "process descriptors (pidfd)",
    "HAS_PROCESS_GROUPS": "process groups",
    "HAS_PROC": "/proc",
    "HAS_MEMFD": "memory files (memfd)",
    "HAS_MEMORY_LIMITS": "memory limits",
    "HAS_FILE_MODES": "owner-only files",
    "HAS_EXTENDED_ATTRIBUTES": "extended attributes",
    "HAS_UNIX_SOCKETS": "Unix sockets",
    "HAS_SIGNAL_SENDERS": "senders of signals",
    "HAS_CGROUPS": "cgroups",
}


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Linux that has everything."""
    monkeypatch.setattr(platform, "SYSTEM", "linux")
    for name in BY_ATTRIBUTE:
        monkeypatch.setattr(platform, name, True)
    monkeypatch.setattr(module, "Kernel", lambda: Has(openat2=True))
    monkeypatch.setattr(module, "Landlock", lambda: Has(landlock=True))
    monkeypatch.setattr(module, "login_shell", lambda: "/bin/bash")


class Has:
    """A kernel that has, or lacks, what is asked for."""

    def __init__(self, *, openat2: bool = False, landlock: bool = False) -> None:
        self.has_openat2 = openat2
        self.is_available = landlock


def missing(features: list[SystemFeature]) -> list[str]:
    return [feature.name for feature in features if feature.is_there is False]


@pytest.mark.usefixtures("complete")
def test_a_complete_linux_is_one_line() -> None:
    features = system_features()

    assert summary(features) == "linux: all 15 features used"
    assert list(system_findings(features)) == []


@pytest.mark.usefixtures("complete")
@pytest.mark.parametrize(("attribute", "name"), BY_ATTRIBUTE.items())
def test_each_feature_that_is_not_there_is_named_with_its_consequence(
    attribute: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, attribute, False)

    features = system_features()
    (finding,) = system_findings(features)

    assert missing(features) == [name]
    assert summary(features) == "linux: 1 missing, see goat-mcp doctor"
    assert (finding.id, finding.about, finding.severity) == ("missing_feature", name, "info")
    assert finding.detail and list(table(features))[-1].endswith(finding.detail)
    assert exit_status([finding]) == 0


@pytest.mark.usefixtures("complete")
def test_a_user_without_a_shell_is_told_what_path_commands_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "login_shell", lambda: None)

    assert missing(system_features()) == ["login shell"]


@pytest.mark.usefixtures("complete")
def test_a_kernel_without_openat2_and_landlock_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Kernel", lambda: Kernel(without_openat2=True))
    monkeypatch.setattr(module, "Landlock", lambda: Landlock(absent=True))

    assert missing(system_features()) == ["confined open (openat2)", "Landlock"]


@pytest.mark.usefixtures("complete")
def test_windows_misses_nothing_that_it_does_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "windows")
    monkeypatch.setattr(platform, "HAS_JOB_OBJECTS", True)
    monkeypatch.setattr(platform, "HAS_ACCESS_LISTS", True)
    for name in BY_ATTRIBUTE:
        monkeypatch.setattr(platform, name, False)
    monkeypatch.setattr(module, "Landlock", lambda: Has())

    features = system_features()

    assert missing(features) == ["directory descriptors", "Landlock", "memory limits", "Unix sockets"]
    assert [feature.name for feature in features if feature.is_there] == ["job objects", "owner-only files"]
    assert summary(features) == "windows: 4 missing, see goat-mcp doctor"
    assert not any("bash.max_memory_bytes" in feature.without for feature in features), "a job object limits it"


@pytest.mark.usefixtures("complete")
@pytest.mark.parametrize(
    ("state", "name", "is_there"),
    [
        (None, "sandbox", None),
        (SandboxState("none", SandboxMode.OFF), "sandbox", None),
        (SandboxState("bubblewrap", SandboxMode.AUTO), "sandbox (bubblewrap)", True),
        (SandboxState("none", SandboxMode.AUTO, "no bwrap"), "sandbox", False),
    ],
)
def test_the_sandbox_counts_if_it_is_wanted_and_is_reported_once(
    state: SandboxState | None, name: str, is_there: bool | None
) -> None:
    features = system_features(state)
    reported = [*system_findings(features), *(sandbox_findings(state) if state else ())]

    (sandbox,) = [feature for feature in features if feature.name.startswith("sandbox")]
    assert (sandbox.name, sandbox.is_there) == (name, is_there)
    assert [finding.id for finding in reported] == (["no_sandbox"] if is_there is False else [])


def test_only_a_question_asks_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ask() -> Has:
        asked.append("kernel")
        return Has()

    monkeypatch.setattr(module, "Kernel", ask)
    settings = Settings(workspace=(tmp_path,))
    gateway = Gateway(settings, approval=Approval.HOST, state=StateDirectory(tmp_path / "state"))

    gateway.status.raw()
    before = list(asked)
    document = gateway.status.document()

    assert (before, asked) == ([], ["kernel"])
    assert document["system"]["name"] == platform.SYSTEM
    (found,) = [one for one in document["system"]["features"] if one["feature"] == "confined open (openat2)"]
    assert found["used"] is False and found["without"]
    assert "system" not in gateway.status.document(for_operator=False)


@pytest.mark.e2e
def test_status_and_doctor_show_the_list(tmp_path: Path) -> None:
    flags = ("--workspace", str(tmp_path))

    status = run("status", *flags, cwd=tmp_path)
    of_status = json.loads(run("status", "--json", *flags, cwd=tmp_path).stdout)["system"]
    doctor = run("doctor", *flags, cwd=tmp_path)
    of_doctor = json.loads(run("doctor", "--json", *flags, cwd=tmp_path).stdout)["system"]

    assert status.stdout.splitlines()[-1].startswith(f"{platform.SYSTEM}: ")
    assert f"{platform.SYSTEM}: " in doctor.stdout and "  used: directory descriptors, " in doctor.stdout
    assert of_status["name"] == of_doctor["name"] == platform.SYSTEM
    assert [one["feature"] for one in of_status["features"]][:2] == ["directory descriptors", "confined open (openat2)"]
    assert {one["feature"]: one["used"] for one in of_doctor["features"]}["keychain"] in (True, False)
