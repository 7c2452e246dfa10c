"""The wheel: what it holds, what its checkers say, and that it works where there is no repository."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from uv import find_uv_bin

from goat_mcp import __version__
from scripts.bundle import bundled
from scripts.distributions import Distributions, build
from scripts.packaging_files import ROOT
from tests.packaging.installing import INSTALLERS, MadeUpHome

# One worker builds and installs: the second tool finds the downloads of the first.
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("wheel")]

PLACES = {
    "manifests": "goat_mcp/shipped_manifests",
    "examples": "goat_mcp/examples",
    "goat_mcp": "goat_mcp",
    "goat_mcp_launch.py": "goat_mcp_launch.py",
}
"""Where the folders of the repository, and the launcher, are in the wheel."""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.full if name != INSTALLERS[0] else ()) for name in INSTALLERS],
)
def home(
    distributions: Distributions, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> MadeUpHome:
    made_up = MadeUpHome(tmp_path_factory.mktemp(f"home-{request.param}"))
    made_up.install(request.param, distributions.wheel)
    return made_up


def files_of_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def files_of_source(archive: Path) -> set[str]:
    """Without the folder that all are in."""
    with tarfile.open(archive) as opened:
        return {member.name.partition("/")[2] for member in opened.getmembers()}


def in_wheel(path: Path) -> str:
    folder, *rest = path.relative_to(ROOT).parts
    return "/".join((PLACES[folder], *rest))


def test_the_wheel_has_the_package_its_manifests_and_two_examples_and_nothing_else(
    distributions: Distributions,
) -> None:
    metadata = f"goat_mcp-{__version__}.dist-info"
    of_metadata = {"METADATA", "WHEEL", "entry_points.txt", "licenses/LICENSE", "RECORD"}

    # bundled() yields pyproject.toml, the README and the licence too.
    of_package = {in_wheel(path) for path in bundled() if path.relative_to(ROOT).parts[0] in PLACES}
    assert files_of_wheel(distributions.wheel) == of_package | {f"{metadata}/{name}" for name in of_metadata}


def test_the_source_distribution_has_what_the_wheel_is_built_from_and_no_tests(distributions: Distributions) -> None:
    sources = {path.relative_to(ROOT).as_posix() for path in bundled()}

    assert files_of_source(distributions.source) == sources | {"CHANGELOG.md", "PKG-INFO", ".gitignore"}


def test_both_say_the_version_of_the_package(distributions: Distributions) -> None:
    assert distributions.wheel.name == f"goat_mcp-{__version__}-py3-none-any.whl"
    assert distributions.source.name == f"goat_mcp-{__version__}.tar.gz"


@pytest.mark.parametrize("checker", [("twine", "check", "--strict"), ("check_wheel_contents",)], ids=lambda one: one[0])
def test_the_checkers_find_nothing(checker: tuple[str, ...], distributions: Distributions) -> None:
    checked = [distributions.wheel, distributions.source] if checker[0] == "twine" else [distributions.wheel]

    done = subprocess.run(
        [sys.executable, "-m", *checker, *map(str, checked)], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr


def test_it_installs_from_the_file_and_says_its_version(home: MadeUpHome) -> None:
    said = json.loads(home.run([str(home.program), "version", "--json"]))

    assert said["goat-mcp"] == __version__
    installed = home.program.resolve()
    assert installed.is_relative_to(home.folder), installed


def test_the_demo_works_without_the_repository(home: MadeUpHome) -> None:
    report = json.loads(home.run([str(home.program), "demo", "--json"]))

    assert len(report["steps"]) > 5
    assert [step for step in report["steps"] if not step["as_expected"]] == []


def test_uvx_runs_it_from_the_file(distributions: Distributions, tmp_path: Path) -> None:
    said = MadeUpHome(tmp_path).run(
        [find_uv_bin(), "tool", "run", "--from", str(distributions.wheel), "goat-mcp", "version", "--json"],
        installing=True,
    )

    assert json.loads(said)["goat-mcp"] == __version__


def test_what_install_writes_from_uvx_starts_after_uv_has_cleaned_up(
    distributions: Distributions, tmp_path: Path
) -> None:
    home, project = MadeUpHome(tmp_path), tmp_path / "project"
    project.mkdir()
    uvx = [find_uv_bin(), "tool", "run", "--no-cache", "--from", str(distributions.wheel), "goat-mcp"]

    printed = home.run([*uvx, "install", "--print", "json", "--workspace", str(project)], installing=True)

    entry = json.loads(printed)["mcpServers"]["goat"]
    start = [entry["command"], *entry["args"]]
    assert start[-3:] == ["serve", "--workspace", str(project)]
    said = home.run([*start[:-3], "version", "--json"], installing=True)
    assert json.loads(said)["goat-mcp"] == __version__
