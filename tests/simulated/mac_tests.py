"""How pytest runs tests on a simulated Mac: -p tests.simulated.mac_tests

What `cannot_run.py` lists is skipped with its reason. A test that skips itself for another reason than one that holds
on a Mac fails the run: nothing is left out in silence. A test that takes too long fails.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
from collections.abc import Generator, Sequence
from types import FrameType

import pytest

from tests.simulated.cannot_run import ABSENT, CANNOT_RUN, NOWHERE, OTHER_USER, listed

SIMULATION = "not on a simulated Mac: "
MARKED = "Linux only: "
TIMEOUT_S = 120


class TooLong(Exception):
    """A test has had its time. Where each thread was is in its standard error."""


def pytest_configure(config: pytest.Config) -> None:
    if sys.platform != "darwin":
        raise pytest.UsageError("this is no simulated Mac: python -m tests.simulated.macos -m pytest ...")
    config.pluginmanager.register(_Skips(), "skips of the simulated Mac")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if (name := listed(item.nodeid)) is not None:
            item.add_marker(pytest.mark.skip(reason=SIMULATION + CANNOT_RUN[name]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    def stop(number: int, frame: FrameType | None) -> None:
        faulthandler.dump_traceback()
        signal.alarm(5)  # what catches it, gets it again
        raise TooLong(f"more than {TIMEOUT_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(TIMEOUT_S)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class _Skips:
    """Which tests were skipped that no list names."""

    def __init__(self) -> None:
        self._unlisted: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = str(report.longrepr[2]).removeprefix("Skipped: ")
            if not reason.startswith((SIMULATION, MARKED, *ABSENT, *NOWHERE, *OTHER_USER)):
                self._unlisted[report.nodeid] = reason

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._unlisted and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for test, reason in self._unlisted.items():
            terminalreporter.write_line(f"skipped, and no list says so: {test}: {reason}")
