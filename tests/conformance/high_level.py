"""A server that others could have written, with the SDK's high-level API alone: by itself, and behind goat-mcp.

What it cannot do by itself it cannot do through goat-mcp either; what it does by itself, it does through goat-mcp.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.conformance.page import Table
from tests.conformance.targets import child, direct, goat

_SERVER = [sys.executable, "-m", "tests.conformance.fixture.high_level"]


@contextmanager
def _direct(folder: Path) -> Generator[str]:
    """The server of the SDK's high-level API by itself."""
    with direct(folder, server=_SERVER) as url:
        yield url


@contextmanager
def _behind_http(folder: Path) -> Generator[str]:
    """goat-mcp with that server as an HTTP upstream."""
    with _direct(folder) as url, goat(folder, {"url": url}) as front:
        yield front


@contextmanager
def _behind_stdio(folder: Path) -> Generator[str]:
    """goat-mcp with that server as a child process."""
    with goat(folder, child(server=_SERVER)) as front:
        yield front


_BY_ITSELF = "high-level server"
HIGH_LEVEL: Mapping[str, Callable[[Path], AbstractContextManager[str]]] = {
    _BY_ITSELF: _direct,
    "high-level HTTP upstream": _behind_http,
    "high-level stdio upstream": _behind_stdio,
}


def lost(columns: Table) -> dict[str, set[str]]:
    """By target, the scenarios that the server passes by itself and not through goat-mcp."""
    passed = {
        target: {outcome.scenario for outcome in outcomes if outcome.passed} for target, outcomes in columns.items()
    }
    return {target: gone for target, through in passed.items() if (gone := passed.get(_BY_ITSELF, set()) - through)}
