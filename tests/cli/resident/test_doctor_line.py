"""`goat-mcp doctor` says whether there is a resident process, and `status` how a server was started."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import psutil
import pytest

from tests.cli.resident.own_home import Home, server_pid, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.linux_only("only Linux has a resident process")]


def run(home: Home, *words: str, **variables: str) -> str:
    command = [*home.python, "-m", "goat_mcp", *words]
    done = subprocess.run(
        command, env={**home.environment, **variables}, cwd=home.folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def resident(home: Home, **variables: str) -> dict[str, Any]:
    return json.loads(run(home, "doctor", "--json", **variables).splitlines()[0])["resident"]


def running(home: Home) -> list[dict[str, Any]]:
    return json.loads(run(home, "status", "--json").splitlines()[0])["running"]


def test_doctor_names_the_process_and_counts_its_sessions(one_home: Home) -> None:
    before = resident(one_home)
    with one_home.fork() as wire:
        pid = psutil.Process(server_pid(wire)).ppid()
        wait_until(lambda: resident(one_home)["running"] != [])
        during, line = resident(one_home), run(one_home, "doctor")

    assert before == {"off": "", "running": []}
    assert during == {"off": "", "running": [{"pid": pid, "sessions": 1, "is_ours": True}]}
    assert f"resident process: process {pid}, 1 session" in line


def test_doctor_says_why_there_is_none(one_home: Home) -> None:
    assert resident(one_home, GOAT_MCP_RESIDENT="0") == {
        "off": "switched off (--no-resident, GOAT_MCP_RESIDENT=0)",
        "running": [],
    }
    assert "none runs; the next start of a server starts it" in run(one_home, "doctor")


def test_status_says_how_each_server_was_started(one_home: Home) -> None:
    with one_home.fork() as forked, one_home.server("--no-resident") as alone:
        assert forked.process.pid != server_pid(forked)
        assert alone.process.pid == server_pid(alone)
        wait_until(lambda: len(running(one_home)) == 2)  # the status is written a second after the start
        how = [one["how_started"] for one in running(one_home)]

    assert sorted(how) == ["resident", "switched off (--no-resident, GOAT_MCP_RESIDENT=0)"]
