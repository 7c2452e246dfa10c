"""Replicas with one queue of approvals: asked at one, decided from another machine's command line, run on a third."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult

from tests.cli.terminal_session import TerminalSession
from tests.e2e.conftest import fill
from tests.e2e.goat import HttpGoat, Launch, connected, http_goat
from tests.quick_start import goat_command
from tests.redis_server import RedisServer, redis_server

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]
KEY = "key-of-the-team-in-tests-0123456789-0123456789"


def launch_of(folder: Path, workspace: Path, redis: RedisServer) -> Launch:
    """With a state directory of its own, as on a machine of its own."""
    variables = {"GOAT_MCP_STATE__URL": redis.url, "GOAT_MCP_STATE__KEY": KEY, "GOAT_MCP_REPLICA__NAME": folder.name}
    variables["GOAT_MCP_REPLICA__LEAVE_DELAY_S"] = "0"
    options = ("--set", "approval.by=elicit", "--set", "approval.wait_s=0", "--set", "limits.calls_per_s=0")
    return Launch(folder, workspace, options, variables)


@pytest.fixture
def redis(tmp_path: Path) -> Generator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server


@pytest.fixture
def replicas(tmp_path: Path, redis: RedisServer) -> Generator[list[HttpGoat]]:
    workspace = fill(tmp_path / "workspace")
    with ExitStack() as stack:
        launches = [launch_of(tmp_path / name, workspace, redis) for name in ("one", "two")]
        yield [stack.enter_context(http_goat(launch)) for launch in launches]


def waiting_for(launch: Launch) -> list[dict[str, Any]]:
    """What a person sees on a third machine."""
    words = goat_command("approvals", "--json")
    done = subprocess.run(words, env=launch.environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["waiting"]


def approve(launch: Launch, *words: str) -> None:
    command = goat_command("approve", *words)
    with TerminalSession(command, cwd=launch.workspace, variables=launch.environment) as terminal:
        assert terminal.end(60) == 0, terminal.shown


@pytest.fixture
def person(replicas: list[HttpGoat], redis: RedisServer, tmp_path: Path) -> Launch:
    return launch_of(tmp_path / "person", tmp_path / "workspace", redis)


async def bash(client: Client, command: str) -> CallToolResult:
    return await client.call_tool("Bash", {"command": command})


def said(result: CallToolResult) -> str:
    return str(getattr(result.content[0], "text", ""))


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_call_asked_at_one_replica_and_approved_elsewhere_runs_once_on_another(
    replicas: list[HttpGoat], person: Launch, tmp_path: Path, mode: str
) -> None:
    one, two = replicas
    async with connected(one, mode) as client:
        pending = await bash(client, "echo ran >> ran.txt")
    waiting = waiting_for(person)
    approve(person, waiting[0]["id"])
    async with connected(two, mode) as client:
        outcomes = [await bash(client, "echo ran >> ran.txt") for _ in range(2)]

    assert "[E_APPROVAL_PENDING]" in said(pending)
    assert len(waiting) == 1
    assert not outcomes[0].is_error, said(outcomes[0])
    assert "[E_APPROVAL_PENDING]" in said(outcomes[1])
    assert (tmp_path / "workspace" / "ran.txt").read_text() == "ran\n"


async def test_a_rule_that_is_remembered_on_one_machine_holds_on_the_replicas(
    replicas: list[HttpGoat], person: Launch
) -> None:
    one, two = replicas
    async with connected(one, "legacy") as client:
        await bash(client, "touch a")
    (waiting,) = waiting_for(person)
    approve(person, waiting["id"], "--always")

    async with connected(two, "legacy") as client:
        with anyio.fail_after(30):
            while (ran := await bash(client, "touch a")).is_error:  # the rule comes a moment later
                assert "[E_APPROVAL_PENDING]" in said(ran)
                await anyio.sleep(0.05)


async def test_a_plain_call_sends_no_command_to_redis(replicas: list[HttpGoat], redis: RedisServer) -> None:
    async with connected(replicas[0], "2026-07-28") as client:
        path = {"pattern": "**/*.py"}
        await client.call_tool("Glob", path)
        commands = redis.commands()
        for _ in range(200):
            result = await client.call_tool("Glob", path)
            assert not result.is_error
        used = redis.commands() - commands

    # The replicas go on telling each other that they live.
    assert used < 50, f"{used} commands for 200 calls"


async def test_without_redis_plain_calls_go_on_and_nothing_is_granted(
    replicas: list[HttpGoat], person: Launch, redis: RedisServer, tmp_path: Path
) -> None:
    one, two = replicas
    async with connected(one, "legacy") as client, connected(two, "legacy") as other:
        await bash(client, "touch b")
        (waiting,) = waiting_for(person)
        approve(person, waiting["id"])
        redis.stop()
        plain = await client.call_tool("Glob", {"pattern": "**/*.py"})
        without = await bash(other, "touch b")
        redis.start()
        after = await bash(other, "touch b")
        asked_again = waiting_for(person)

    assert not plain.is_error
    assert without.is_error and "does not answer" in said(without)
    assert "[E_APPROVAL_PENDING]" in said(after)
    assert len(asked_again) == 1
    assert not (tmp_path / "workspace" / "b").exists()
