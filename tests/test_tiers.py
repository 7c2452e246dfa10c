"""Which tests the quick run leaves out."""

from __future__ import annotations

import pytest

from tests.conftest import left_out_of_quick_run

TESTS = """
import pytest

def test_plain(): ...

@pytest.mark.full
def test_slow(): ...

@pytest.mark.matrix
@pytest.mark.parametrize("n", range(5))
def test_many(n): ...

@pytest.mark.matrix
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.full)])
def test_some(n): ...
"""
GROUP = """
import os, pathlib, pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("n", range(6))
def test_in_a_group(n):
    with (pathlib.Path(__file__).parent / "workers").open("a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + chr(10))
"""
pytest_plugins = ["pytester"]


def test_the_quick_run_has_one_case_of_each_matrix_and_nothing_that_is_marked_full(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = full: x\n matrix: y")
    items = pytester.getitems(TESTS)

    left_out = left_out_of_quick_run(items)

    kept = [item.name.partition("[")[0] for item in items if item not in left_out]
    assert kept == ["test_plain", "test_many", "test_some"]
    assert left_out_of_quick_run(items) == left_out


def test_one_worker_runs_a_group(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]")
    pytester.makepyfile(GROUP)

    pytester.runpytest_subprocess("-n", "2", "--dist", "loadgroup").assert_outcomes(passed=6)

    assert len(set((pytester.path / "workers").read_text().split())) == 1
