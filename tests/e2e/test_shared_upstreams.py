"""Two goat-mcp servers, as of two windows, with the same shared upstream: one process, and each as if it were alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import TextResourceContents

from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import Launch, connected, listed_with
from tests.e2e.resident_launch import ResidentLaunch
from tests.quick_start import goat_command
from tests.resident_processes import end_residents_below
from tests.upstreams.fleet import server
from tests.upstreams.sharing.brokers import Brokers, pids, private_runtime, until
from tests.upstreams.test_stdio_upstreams import is_alive

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.linux_only("a socket must say who is at its other end")]
TOOL = "mcp__up__"


@pytest.fixture
def brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Brokers]:
    with private_runtime(tmp_path, monkeypatch) as ours:
        ours.start()
        yield ours


def launches(folder: Path, *kinds: str, **members: Any) -> list[Launch]:
    """Two windows in projects of their own, with one user's settings and state."""
    entry = server("shared.py", folder / "pids", *kinds, share=True, **members)
    file = upstream_file(folder / "upstreams.json", up=entry)
    options = (*UNASKED, "--upstreams", str(file))
    return [Launch(folder, fill(folder / f"project {number}"), options) for number in range(2)]


@asynccontextmanager
async def windows(*of: Launch, mode: str = "legacy", **client: Any) -> AsyncGenerator[list[Client]]:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(one, mode, **client)) for one in of]
        for one in clients:
            await listed_with(one, f"{TOOL}pid")
        yield clients


async def called(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(f"{TOOL}{tool}", arguments)
    return str(getattr(result.content[0], "text", ""))


async def shown(client: Client) -> dict[str, Any]:
    """The upstream as `goat://status` has it."""
    read = await client.read_resource("goat://status")
    assert isinstance(read.contents[0], TextResourceContents)
    return json.loads(read.contents[0].text)["upstreams"][0]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("kind", ["", "stateless"], ids=["handshake", "stateless"])
async def test_two_windows_have_one_process_and_each_its_own_answers(
    brokers: Brokers, tmp_path: Path, mode: str, kind: str
) -> None:
    texts: dict[tuple[int, int], str] = {}

    async def call(client: Client, window: int, number: int) -> None:
        texts[window, number] = await called(client, "slow" if number % 5 == 0 else "echo", text=f"{window}.{number}")

    async with windows(*launches(tmp_path, kind), mode=mode) as clients:
        told = {await called(one, "pid") for one in clients}
        async with anyio.create_task_group() as group:
            for number in range(20):
                for window, client in enumerate(clients):
                    group.start_soon(call, client, window, number)

    assert told == {str(pids(tmp_path / "pids")[0])}
    assert len(pids(tmp_path / "pids")) == 1
    assert texts == {(window, number): f"{window}.{number}" for window in range(2) for number in range(20)}


async def test_forks_of_a_resident_process_share_an_upstream(brokers: Brokers, tmp_path: Path) -> None:
    ours = [ResidentLaunch.like(one, brokers.runtime) for one in launches(tmp_path)]
    try:
        async with windows(*ours) as clients:
            told = {await called(one, "pid") for one in clients}
            sharing = (await shown(clients[0]))["sharing"]
    finally:
        end_residents_below(brokers.runtime)

    assert told == {str(pids(tmp_path / "pids")[0])}
    assert sharing["broker_pid"] == brokers.pid
    assert len(ours[0].forks) == 2


async def test_status_says_who_shares_a_process(brokers: Brokers, tmp_path: Path) -> None:
    ours, broker = launches(tmp_path), brokers.pid
    async with windows(*ours) as clients:
        for one in clients:
            await called(one, "pid")
        await used_by_two(clients[0])
        sharing = (await shown(clients[0]))["sharing"]
        command = goat_command("status")
        said = ""
        with anyio.fail_after(60):
            while " of broker " not in said:  # it tells others of itself some time after its first list
                said = (await anyio.run_process(command, env=ours[0].environment)).stdout.decode()

    assert sharing["is_shared"]
    assert sharing["broker_pid"] == broker
    assert sharing["pid"] == pids(tmp_path / "pids")[0]
    assert os.getpid() not in sharing["sessions"]
    users = ", ".join(map(str, sharing["sessions"]))
    process = f"process {sharing['pid']} of broker {broker}"
    assert f"up: shared: {process}, works in {sharing['folder']}, used by goat-mcp {users}" in said


async def test_the_process_outlives_the_window_that_started_it(brokers: Brokers, tmp_path: Path) -> None:
    first, second = launches(tmp_path)
    async with windows(second) as staying:
        async with windows(first) as leaving:
            before = await called(leaving[0], "pid")
        after = await called(staying[0], "pid")

    assert before == after
    assert is_alive(int(after))


async def test_a_killed_broker_is_started_again_by_the_next_call(brokers: Brokers, tmp_path: Path) -> None:
    async with windows(*launches(tmp_path)) as clients:
        before = {await called(one, "pid") for one in clients}
        killed = brokers.pid
        os.kill(killed, signal.SIGKILL)
        until(lambda: not is_alive(pids(tmp_path / "pids")[0]))
        after: set[str] = set()
        for one in clients:
            text = ""
            with anyio.fail_after(60):
                while not text.isdecimal():
                    text = await called(one, "pid")
            after.add(text)

    assert len(before) == len(after) == 1
    assert before != after
    assert brokers.pid != killed


# R-UP-8
async def test_a_window_that_is_killed_leaves_the_others_process_alone(brokers: Brokers, tmp_path: Path) -> None:
    first, second = launches(tmp_path)
    async with windows(second) as staying:
        before = await called(staying[0], "pid")
        process = await anyio.to_thread.run_sync(_calling, first)
        await used_by_two(staying[0])
        await called(staying[0], "slow")
        process.kill()
        await anyio.to_thread.run_sync(process.wait)
        await anyio.to_thread.run_sync(until, (tmp_path / "pids.cancelled").exists)
        after = await called(staying[0], "pid")

    assert before == after


async def used_by_two(client: Client) -> None:
    with anyio.fail_after(60):
        while len((await shown(client))["sharing"]["sessions"]) < 2:  # noqa: ASYNC110  # it happens in other processes
            await anyio.sleep(0.05)


def _calling(launch: Launch) -> subprocess.Popen[bytes]:
    """A window in the middle of a call that does not end."""
    process = subprocess.Popen(
        launch.command, env=launch.environment, cwd=launch.workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "killed", "version": "1"}}
    call = {"name": f"{TOOL}cancelled", "arguments": {"text": "killed"}}
    for number, (method, params) in enumerate((("initialize", hello), ("tools/list", {}), ("tools/call", call)), 1):
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(frame).encode() + b"\n")
        process.stdin.flush()
        if method != "tools/call":
            process.stdout.readline()
    return process
