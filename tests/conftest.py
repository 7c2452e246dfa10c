"""Fixtures every test folder uses, and what the end of each run tells."""

from __future__ import annotations

import pytest

from tests.contract.attack_cases import count_line


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many of the agreed attacks the tests run, however few of them this run was asked for."""
    terminalreporter.write_line(count_line())
