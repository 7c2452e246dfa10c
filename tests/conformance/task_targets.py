"""What the suite's scenarios for tasks are run against: a server of ours that knows tasks, goat-mcp in front of it, and
goat-mcp that makes tasks of the long calls of a server that knows none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.conformance.targets import child, direct, goat

TASK_SCENARIOS = (
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
)
NOT_RUN_BY_SUITE = ("tasks-status-notifications",)
"""The suite itself skips it, for it does not listen yet."""
_OFFERED, _NONE = ("--tasks", "offered"), ("--tasks", "none")
_SOON = "tasks.after_s=0.2"


@contextmanager
def _direct(folder: Path) -> Generator[str]:
    with direct(folder, *_OFFERED) as url:
        yield url


@contextmanager
def _made_by_goat(folder: Path) -> Generator[str]:
    with direct(folder, *_NONE) as url, goat(folder, {"url": url}, _SOON) as front:
        yield front


@contextmanager
def _relayed_http(folder: Path) -> Generator[str]:
    with direct(folder, *_OFFERED) as url, goat(folder, {"url": url}) as front:
        yield front


@contextmanager
def _relayed_stdio(folder: Path) -> Generator[str]:
    with goat(folder, child(*_OFFERED)) as front:
        yield front


TASK_TARGETS: Mapping[str, Callable[[Path], AbstractContextManager[str]]] = {
    "direct": _direct,
    "tasks of goat-mcp": _made_by_goat,
    "HTTP upstream": _relayed_http,
    "stdio upstream": _relayed_stdio,
}
