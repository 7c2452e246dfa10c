"""Fixtures every test folder uses, which tests one worker runs, and what the end of each run tells."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.contract.attack_cases import count_line

# How long an example takes says how busy the machine is. What is too much to generate or to filter still fails.
settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")

# Importing the SDK and the tests makes millions of objects that all stay; looking through them meanwhile takes a while.
gc.disable()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a module starts once for its tests, one worker starts: it runs them all."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None and _is_of_a_shared_module(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def _is_of_a_shared_module(item: pytest.Item) -> bool:
    info: Any = getattr(item, "_fixtureinfo", None)  # pytest tells it nowhere else
    known: dict[str, Any] = info.name2fixturedefs if info is not None else {}
    return any(found[-1].scope == "module" and found[-1].baseid for found in known.values() if found)


def pytest_collection_finish() -> None:
    """From now on the collector looks at what the tests make, not at the tests."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many of the agreed attacks the tests run, however few of them this run was asked for."""
    terminalreporter.write_line(count_line())
