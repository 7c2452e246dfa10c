"""What the resident process builds before it forks is the same for every session, and nothing of a user's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a resident process")]

_PRELOADED = """
import gc, json, os, sys, threading
seen = []
sys.addaudithook(lambda event, arguments: seen.append((event, str(arguments[0]) if arguments else "")))
from goat_mcp.cli.resident.preloading import preload
before = dict(os.environ)
kept = preload()
caches = [one for one in gc.get_objects() if type(one).__name__ == "_lru_cache_wrapper"]
caches = [one for one in caches if one.__module__.startswith("goat_mcp.") and one.cache_info().currsize]
cached = {f"{one.__module__}.{one.__qualname__}" for one in caches}
opened = sorted({name for event, name in seen if event in ("open", "os.listdir", "os.scandir")})
started = sorted({event for event, _ in seen if event in ("subprocess.Popen", "os.fork", "os.exec", "socket.connect")})
sys._debugmallocstats()
print(json.dumps({
    "cached": sorted(cached),
    "opened": opened,
    "started": started,
    "threads": len(os.listdir("/proc/self/task")),
    "loops": sum(type(one).__name__.endswith("EventLoop") for one in gc.get_objects()),
    "environment": before == dict(os.environ),
}))
"""


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """What one process says after it has loaded all, and the report of its memory."""
    home = tmp_path_factory.mktemp("home")
    (home / ".config" / "goat-mcp").mkdir(parents=True)
    (home / ".config" / "goat-mcp" / "settings.yaml").write_text("mode: plan\n")
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text("{}")
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "GOAT_MCP_MODE": "plan"}
    run = subprocess.run(
        [sys.executable, "-c", _PRELOADED], cwd="/", env=env, capture_output=True, text=True, timeout=120, check=True
    )
    return {**json.loads(run.stdout), "home": str(home)}, run.stderr


def test_nothing_of_the_user_is_read_and_nothing_runs(preloaded: tuple[dict[str, Any], str]) -> None:
    found, _ = preloaded

    assert not [path for path in found["opened"] if Path(path).is_relative_to(found["home"])]
    assert found["started"] == []
    assert (found["threads"], found["loops"], found["environment"]) == (1, 0, True)


def test_only_what_is_the_same_for_all_sessions_is_remembered(preloaded: tuple[dict[str, Any], str]) -> None:
    found, _ = preloaded

    contracts = ("app_contracts", "builtin_contracts", "builtin_names", "meta_contracts", "names_of_ours")
    assert found["cached"] == [f"goat_mcp.catalog.builtin_contracts.{name}" for name in contracts]


def test_a_session_puts_its_objects_into_memory_of_its_own(preloaded: tuple[dict[str, Any], str]) -> None:
    _, report = preloaded

    rows = [line.split() for line in report.splitlines()]
    free = {int(row[1]): int(row[4]) for row in rows if len(row) == 5 and all(word.isdigit() for word in row)}
    assert len(free) == 32
    # At most those of one pool, which was empty: its pages are nobody's yet.
    assert {size: count for size, count in free.items() if count > 16384 // size} == {}
