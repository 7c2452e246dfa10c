"""A client that sends more calls than may run at a time: some run, the others are told, and it stays reachable."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import fill, ours, upstream_file
from tests.e2e.goat import Launch
from tests.e2e.wire import Wire

pytestmark = [pytest.mark.real_processes, pytest.mark.e2e]

CALLS, AT_A_TIME = 100, 16
PINGS = 20
BUSY_WITHIN_S = 60.0
IMPATIENT = """\
from goat_mcp.cli.main import main
from goat_mcp.core.context import ToolContext
ToolContext.wait_left_s.__defaults__ = (8.0,)
main()
"""
"""goat-mcp, but a call waits 8 s in place of 45."""


def test_of_a_hundred_sleeps_sixteen_run_and_pings_are_answered_meanwhile(tmp_path: Path) -> None:  # R-LIMIT-1
    folder = tmp_path
    servers = upstream_file(folder / "servers.json", plain=ours("plain", "healthy", str(folder)))
    launch = Launch(folder, fill(folder / "workspace"), ("--upstreams", str(servers)))
    command = [sys.executable, "-c", IMPATIENT, *launch.command[3:]]
    with Wire(command, launch.environment, launch.workspace, folder / "stderr") as wire:
        wire.handshake()
        wire.request("tools/list")
        wire.text("mcp__plain__pid", {})

        sleeps = [
            wire.start("tools/call", {"name": "mcp__plain__nap", "arguments": {"seconds": 600}}) for _ in range(CALLS)
        ]
        pings = [wire.request("ping")["result"] for _ in range(PINGS)]
        # Those that came last are told that there is no place; those that run are not heard of for ten minutes.
        refused = [wire.answer(request, BUSY_WITHIN_S)["result"] for request in sleeps[AT_A_TIME:]]
        again = wire.request("ping")
        answered = [request for request in sleeps[:AT_A_TIME] if wire.is_answered(request)]

    assert {json.dumps(one["structuredContent"]["error"]["code"]) for one in refused} == {'"E_BUSY"'}
    assert all(one["isError"] for one in refused)
    assert [*pings, again["result"]] == [{}] * (PINGS + 1)
    assert answered == [], "the pings waited for a place"
