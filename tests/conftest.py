"""Fixtures every test folder uses, which tests one worker runs, and what the end of each run tells."""

from __future__ import annotations

import gc
import os
import signal
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sse_starlette.sse import AppStatus

from goat_mcp.calls.approvals.options import ApprovalOptions
from goat_mcp.core import platform, posix
from goat_mcp.files.search.ripgrep import find_ripgrep
from goat_mcp.gateway.build import manifests
from tests import quick_start
from tests.contract.attack_cases import count_line
from tests.not_on_windows import NOT_ON_WINDOWS
from tests.quick_start import login_path
from tests.repetitions import examples, is_full
from tests.resident_processes import end_residents_below, residents_of_this_user
from tests.shared_states import one_redis, states

__all__ = ["one_redis", "states"]  # fixtures

# How long an example takes says how busy the machine is. What is too much to generate or to filter still fails.
settings.register_profile(
    "busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(100)
)
settings.load_profile("busy machine")

# Importing the SDK and the tests makes millions of objects that all stay; looking through them meanwhile takes a while.
gc.disable()

# Servers of tests are processes of their own, unless a test is about the resident process.
os.environ["GOAT_MCP_RESIDENT"] = "0"

# Once one server of a process was told to stop, it would end the streams of all later ones. Ours end theirs themselves.
AppStatus.disable_automatic_graceful_drain()

# Nobody answers here: what must be approved does not wait, unless a test says how long.
ApprovalOptions.model_fields["wait_s"].default = 0.0

# Reading the manifests that come with us is most of building a gateway, and the tests build thousands in one process.
manifests.shipped = cache(manifests.shipped)

login_path.ask_once()

# Under `nohup`, or behind a script's `&`, a test run ignores these, and so would the programs that it ends with them.
if platform.SYSTEM != "windows":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


_ROOT = Path(__file__).parents[1]
_TOGETHER = 10
"""So many tests of a module are handed to a worker at once."""
_FIRST = ("conformance", "simulated", "packaging", "docs", "e2e", "chaos", "bench", "server", "cli", "ui")
"""Folders with tests of half a minute: one that began last would run when all other workers have nothing left to do."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def ripgrep_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """For commands that call `rg` by its name: it is beside this Python, where neither a fresh machine nor a command
    looks."""
    program = find_ripgrep()
    assert program is not None
    folder = tmp_path_factory.mktemp("programs")
    (folder / "rg").symlink_to(program)
    monkeypatch.setenv("PATH", os.pathsep.join((str(folder), os.environ["PATH"])))


@pytest.fixture(scope="session", autouse=True)
def end_residents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests that start goat-mcp as a new user does start a resident process, too. None does so as the user who runs
    the tests."""
    before = residents_of_this_user()
    yield
    end_residents_below(tmp_path_factory.getbasetemp())
    left = residents_of_this_user() - before
    for pid in left:
        os.kill(pid, signal.SIGTERM)
    assert not left, "a test has started a resident process in your own home; give it GOAT_MCP_RESIDENT=0 or a home"


@pytest.hookimpl(tryfirst=True)  # before the fixtures of its module
def pytest_runtest_setup(item: pytest.Item) -> None:
    quick_start.use_real_processes(item.get_closest_marker("real_processes") is not None)


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `make test-all` runs. What a module starts once for its tests, one worker starts: it runs
    them all."""
    if not is_full() and not any("::" in word for word in config.args):  # who names a test gets it
        left_out = left_out_of_quick_run(items)
        config.hook.pytest_deselected(items=left_out)
        not_now = set(left_out)
        items[:] = [item for item in items if item not in not_now]
    for item in items:
        for reason in why_not_here(item):
            item.add_marker(pytest.mark.skip(reason=reason))
    items.sort(key=_turn)
    _group(items)


def _turn(item: pytest.Item) -> int:
    folder = item.path.relative_to(_ROOT).parts[1]
    return _FIRST.index(folder) if folder in _FIRST else len(_FIRST)


def _group(items: Sequence[pytest.Item]) -> None:
    """For each test that is handed out alone, xdist looks at all that were handed out before."""
    of_module: Counter[Path] = Counter()
    for item in items:
        if item.get_closest_marker("xdist_group") is not None:
            continue
        name = item.path.stem
        if not _is_of_a_shared_module(item):
            name = f"{name}_{of_module[item.path] // _TOGETHER}"
            of_module[item.path] += 1
        item.add_marker(pytest.mark.xdist_group(name))


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if platform.SYSTEM != "windows":
        return None
    return collection_path.relative_to(_ROOT).as_posix() in NOT_ON_WINDOWS or None


def pytest_make_parametrize_id(val: object) -> str | None:
    """Windows takes no variable of more than 32,767 characters, and pytest puts the id of a test into one."""
    return f"{val[:80]!r}... {len(val)} long" if isinstance(val, str | bytes) and len(val) > 1_000 else None


def why_not_here(item: pytest.Item) -> list[str]:
    """What the test's markers ask for and this machine has not. For the system's sake nothing else leaves out a test
    but `not_on_windows.py`: files that cannot even be imported there."""
    is_root = platform.HAS_FILE_MODES and posix.geteuid() == 0
    reasons: list[str] = []
    if not is_root:
        reasons += [f"root only: {mark.args[0]}" for mark in item.iter_markers("root_only")]
    if is_root or platform.SYSTEM == "windows":
        reasons += [f"not as root: {mark.args[0]}" for mark in item.iter_markers("not_as_root")]
    if platform.SYSTEM != "linux":
        reasons += [f"Linux only: {mark.args[0]}" for mark in item.iter_markers("linux_only")]
    if platform.SYSTEM != "windows":
        reasons += [f"Windows only: {mark.args[0]}" for mark in item.iter_markers("windows_only")]
    else:
        reasons += [f"not on Windows: {mark.args[0]}" for mark in item.iter_markers("posix_only")]
    return reasons


def left_out_of_quick_run(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """What is marked `full`, and of each test that is marked `matrix` all cases but one.

    Which one it is depends on the test's name alone, so that tests beside each other show different cases.
    """
    left_out = [item for item in items if item.get_closest_marker("full")]
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("matrix") and not item.get_closest_marker("full"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, of_one in cases.items():
        chosen = zlib.crc32(name.encode()) % len(of_one)
        left_out += [item for index, item in enumerate(of_one) if index != chosen]
    return left_out


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
    if platform.SYSTEM == "windows":
        for place, reason in NOT_ON_WINDOWS.items():
            terminalreporter.write_line(f"not on Windows: {place}: {reason}")
