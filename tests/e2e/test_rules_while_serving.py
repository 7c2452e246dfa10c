"""Rules that a user changes in a terminal while a server runs: the next call goes by them (E of issue 16, D15)."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.rule_end import with_end
from tests.e2e.goat import Launch
from tests.e2e.wire import Wire
from tests.quick_start import goat_command

pytestmark = pytest.mark.e2e
WITHIN_S = 2.0
MACHINE_S = 8.0
"""More, for a busy machine."""
ECHO = {"command": "echo hi"}


def goat(launch: Launch, *words: str) -> str:
    done = subprocess.run(
        goat_command(*words), env=launch.environment, cwd=launch.workspace, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def until(wanted: Callable[[], bool], within_s: float) -> None:
    started_s = time.monotonic()
    while not wanted():
        assert time.monotonic() - started_s < within_s + MACHINE_S
        time.sleep(0.02)


@pytest.fixture
def asking(launch: Launch) -> Launch:
    """Nobody can be asked: what no rule allows is refused."""
    return replace(launch, options=("--set", "approval=deny"))


def runs(wire: Wire) -> bool:
    return not wire.call("Bash", ECHO).get("isError")


# D15, R-PERM-7
def test_a_rule_counts_within_two_seconds_and_a_broken_file_leaves_the_old_ones(asking: Launch) -> None:
    own = Path(asking.environment["XDG_CONFIG_HOME"]) / "goat-mcp" / "goat-mcp.yaml"
    with Wire(asking.command, asking.environment, asking.workspace) as wire:
        wire.handshake()
        assert not runs(wire)

        goat(asking, "rules", "allow", "Bash(echo *)")
        until(lambda: runs(wire), WITHIN_S)

        own.write_text(own.read_text() + "  deny: [Bash(\n")
        until(lambda: "broken_settings" in [one["reason_code"] for one in problems(asking)], 2 * WITHIN_S)
        assert runs(wire)
        (problem,) = problems(asking)
        assert str(own) in problem["detail"] and "what was in force before stays in force" in problem["detail"]

        own.write_text("permissions:\n  allow:\n    - Bash(echo *)\n")
        said = goat(asking, "rules", "deny", "Bash(echo hi)")
        until(lambda: not runs(wire), WITHIN_S)
        assert "Running servers follow within 2 seconds: process" in said
        goat(asking, "rules", "remove", "Bash(echo hi)")
        until(lambda: runs(wire), WITHIN_S)


def test_a_rule_ends_while_the_server_runs(asking: Launch) -> None:
    with Wire(asking.command, asking.environment, asking.workspace) as wire:
        wire.handshake()
        end_s = int(time.time() + 10)

        goat(asking, "rules", "allow", with_end("Bash(echo *)", end_s))
        until(lambda: runs(wire), WITHIN_S)
        until(lambda: time.time() >= end_s, 15)

        assert not runs(wire)
        assert json.loads(goat(asking, "rules", "--json"))[0]["has_ended"]


def problems(launch: Launch) -> list[dict[str, Any]]:
    """What `goat-mcp status` says is wrong with the one that runs."""
    (server,) = json.loads(goat(launch, "status", "--json"))["running"]
    return server["problems"]
