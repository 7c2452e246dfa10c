"""A test that fails runs once more, alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.run_tests import without_group

ROOT = Path(__file__).parents[1]
FAILS_ONCE = """
import pathlib, pytest

@pytest.mark.parametrize("value", ["a@b"])
def test_fails_once(value):
    mark = pathlib.Path(__file__).with_name("mark")
    seen = mark.exists()
    mark.touch()
    assert seen

def test_passes(): ...
"""
FAILS_TWICE = "def test_fails(): assert False"
MANY_FAIL = "import pytest\n@pytest.mark.parametrize('n', range(11))\ndef test_fails(n): assert False"


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:cacheprovider\n")
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "scripts.run_tests", "-n", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def test_what_passes_alone_is_listed_and_the_run_passes(tmp_path: Path) -> None:
    done = run(tmp_path, FAILS_ONCE)

    assert done.returncode == 0, done.stdout
    (listed,) = done.stdout.partition("passed only when run alone:\n")[2].splitlines()
    assert listed.strip().endswith("test_it.py::test_fails_once[a@b]")


@pytest.mark.parametrize(("text", "runs"), [(FAILS_TWICE, 2), (MANY_FAIL, 1)], ids=["one", "more than ten"])
def test_what_fails_twice_or_with_many_others_fails_the_run(tmp_path: Path, text: str, runs: int) -> None:
    done = run(tmp_path, text)

    assert done.returncode == 1
    assert "passed only" not in done.stdout
    assert done.stdout.count(" failed in ") == runs


def test_a_test_is_named_without_its_group() -> None:
    assert without_group("tests/test_a.py::test_b@test_a") == "tests/test_a.py::test_b"
    assert without_group("tests/test_a.py::test_b[x@y]") == "tests/test_a.py::test_b[x@y]"
    assert without_group("tests/test_a.py::test_b[x@y]@test_a") == "tests/test_a.py::test_b[x@y]"
