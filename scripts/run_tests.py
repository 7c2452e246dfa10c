"""Run the tests: python -m scripts.run_tests [WORDS FOR PYTEST].

If a few fail, they run once more, one after the other and nothing beside them: on a busy machine a test can be too
slow. Those that pass then are listed, and the run passes. A test that fails twice fails the run.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

MOST_AGAIN = 10


class _Failed:
    """Notes which tests fail. pytest calls it for each part of a test: the set-up, the test, the tear-down."""

    def __init__(self) -> None:
        self.ids: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.ids[without_group(report.nodeid)] = None


def without_group(test_id: str) -> str:
    """xdist puts `@` and the group of a test after its id."""
    test, _, group = test_id.rpartition("@")
    return test if test and group.isidentifier() else test_id


def main(words: list[str]) -> int:
    failed = _Failed()
    code = pytest.main(words, plugins=[failed])
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(failed.ids) <= MOST_AGAIN:
        return int(code)

    print(f"\n{len(failed.ids)} failed; running them once more, alone:", flush=True)  # noqa: T201
    again = subprocess.run([sys.executable, "-m", "pytest", "-n", "0", *failed.ids], check=False)
    if again.returncode == 0:
        print("passed only when run alone:", *failed.ids, sep="\n  ")  # noqa: T201
    return again.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
