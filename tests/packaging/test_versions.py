"""The version has one place, `goat_mcp/core/version.py`; everything else follows or is held against it."""

from __future__ import annotations

import re
import shutil
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from goat_mcp import __version__
from scripts import packaging_files
from scripts.bundle import make
from scripts.distributions import build
from scripts.release_notes import CHANGELOG, release_notes

OTHER = "41.2.3"
HISTORY = f"""# Changelog

## {OTHER} (2027-02-28)

### Added

- One thing.

## 41.2.2 (2027-01-31)

- An older thing.
"""


def test_pyproject_takes_it_from_the_package() -> None:
    project = tomllib.loads((packaging_files.ROOT / "pyproject.toml").read_text())["project"]

    assert "version" not in project and project["dynamic"] == ["version"]
    assert version("goat-mcp") == __version__


def test_a_version_changed_in_its_one_place_is_that_of_wheel_and_source(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE", "goat_mcp_launch.py"):
        shutil.copy(packaging_files.ROOT / name, tmp_path)
    for name in ("goat_mcp", "manifests", "examples"):
        shutil.copytree(packaging_files.ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    place = tmp_path / "goat_mcp" / "core" / "version.py"
    place.write_text(place.read_text().replace(__version__, OTHER))

    changed = build(tmp_path / "dist", tmp_path)

    assert changed.wheel.name == f"goat_mcp-{OTHER}-py3-none-any.whl"
    assert changed.source.name == f"goat_mcp-{OTHER}.tar.gz"


def test_registry_entry_manifest_and_bundle_follow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packaging_files, "__version__", OTHER)
    entry, manifest = packaging_files.registry_entry(), packaging_files.bundle_manifest([])

    assert (entry["version"], entry["packages"][0]["version"], manifest["version"]) == (OTHER, OTHER, OTHER)
    assert make(tmp_path).name == f"goat-mcp-{OTHER}.mcpb"


def test_the_changelog_begins_with_it() -> None:
    newest = re.search(r"^## (\S+)", CHANGELOG.read_text(), re.MULTILINE)

    assert newest is not None and newest[1] == __version__


def test_release_notes_are_the_newest_section_of_the_changelog() -> None:
    assert release_notes(f"v{OTHER}", OTHER, HISTORY) == "### Added\n\n- One thing."
    assert release_notes("v1.0.0", "1.0.0", "## 1.0.0 (2027-01-01)\n\n- All.\n") == "- All."


@pytest.mark.parametrize(
    ("tag", "its_version", "changelog", "said"),
    [
        (OTHER, OTHER, HISTORY, f"expected v{OTHER}"),
        ("v41.2.2", OTHER, HISTORY, f"the tag is v41.2.2, but goat_mcp/core/version.py says {OTHER}"),
        ("v42.0.0", "42.0.0", HISTORY, f"the newest heading of CHANGELOG.md is {OTHER}, not 42.0.0"),
        (f"v{OTHER}", OTHER, HISTORY.replace("2027-02-28", "unreleased"), "write the date of the release"),
    ],
    ids=["no v", "another version", "no heading", "no date"],
)
def test_a_tag_that_is_no_release_is_refused(tag: str, its_version: str, changelog: str, said: str) -> None:
    with pytest.raises(SystemExit, match=re.escape(said)):
        release_notes(tag, its_version, changelog)
