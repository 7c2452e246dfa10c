"""docs/configuration.md says what is in force and where the limits are: its example and its table are held to that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goat_mcp.calls.permissions.mode import Mode
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import path_keys
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.trust.project import whole_project
from goat_mcp.state.trust.settings_file import find_project_file
from goat_mcp.state.trust.store import TrustStore
from tests.docs.test_documents import ROOT, blocks

DOCUMENT = ROOT / "docs" / "configuration.md"
UNITS = {"MiB": 1024 * 1024}


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_the_projects_file_counts_as_its_comments_say(tmp_path: Path) -> None:
    (block,) = blocks(DOCUMENT, "yaml")
    project, state = tmp_path / "project", StateDirectory(tmp_path / "state")
    project.mkdir()
    (project / "goat-mcp.yaml").write_text(block)

    untrusted = load_settings({"workspace": [str(project)]}, state=state)
    found = find_project_file(project)
    assert found is not None
    TrustStore(state).trust(found.path, whole_project(found, path_keys()).sha256)
    trusted = load_settings({"workspace": [str(project)]}, state=state)

    assert (untrusted.permissions.deny, untrusted.mode) == (("WebFetch",), Mode.DEFAULT)
    assert (trusted.permissions.deny, trusted.mode) == (("WebFetch",), Mode.ACCEPT_EDITS)


def test_the_limits_are_the_defaults() -> None:
    limits = load_settings({}).limits
    written = dict(re.findall(r"^\| `limits\.(\w+)` \| ([\w. ]+?) \|", DOCUMENT.read_text(), re.MULTILINE))

    values = {key: float(text.split()[0]) * UNITS.get(text.split()[-1], 1) for key, text in written.items()}

    assert values == {key: float(value) for key, value in limits.model_dump().items()}
