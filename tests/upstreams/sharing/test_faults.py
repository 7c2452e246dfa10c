"""What one session or one process does, and the others must not notice: odd frames, launches that break, processes that
stop reading, restarts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import JSONRPCRequest

from goat_mcp.core.calling_client import ClientRequest
from goat_mcp.core.errors import ToolError
from goat_mcp.upstreams.faults import FaultMarks
from goat_mcp.upstreams.sharing.shared_launch import SharedLaunch
from goat_mcp.upstreams.sharing.shared_process import SharedProcess, open_shared
from goat_mcp.upstreams.transports.child_pipes import StdioTransport
from goat_mcp.upstreams.transports.frames import FrameReader
from tests.upstreams.calls.test_multi_round import Person
from tests.upstreams.fleet import QUICK, Fleet, fleet, server
from tests.upstreams.sharing.brokers import Brokers, pids, quick, until
from tests.upstreams.sharing.test_shared_upstreams import TOOL, sessions
from tests.upstreams.test_stdio_upstreams import is_alive

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.linux_only("a socket must say who is at its other end")]
IMPATIENT = replace(QUICK, ping_timeout_s=0.3)


class _Silent(Person):
    """A person who is asked and does not answer."""

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        await anyio.sleep_forever()
        raise AssertionError


@asynccontextmanager
async def two_servers(folder: Path, **members: Any) -> AsyncGenerator[Fleet]:
    """A session with a shared server `well`, and `up` beside it."""
    entries = {
        "well": server("shared.py", folder / "well", share=True),
        "up": {**server("shared.py", folder / "pids", share=True), **members},
    }
    async with fleet(folder, entries, sharing=quick()) as running:
        yield running


async def test_odd_frames_of_one_process_end_neither_the_broker_nor_the_process(
    brokers: Brokers, tmp_path: Path
) -> None:
    async with two_servers(tmp_path) as running:
        broker = brokers.pid
        before = (await running.call("mcp__well__pid")).text
        silent = _Silent()
        await running.call(f"{TOOL}odd", client=silent, session_key="s")
        again = await running.call(f"{TOOL}pid", client=silent, session_key="s")
        after = (await running.call("mcp__well__pid")).text

    assert after == before
    assert brokers.pid == broker
    assert again.text == str(pids(tmp_path / "pids")[-1])


async def test_a_launch_that_breaks_in_the_broker_breaks_alone(brokers: Brokers, tmp_path: Path) -> None:
    async with two_servers(tmp_path, cwd="/" + "a" * 300) as running:
        await running.until(lambda: running.status("up").reason_code != "")
        told = await running.call("mcp__well__pid")

    assert told.text == str(pids(tmp_path / "well")[0])
    assert len(pids(tmp_path / "well")) == 1


async def test_a_process_that_does_not_read_any_more_is_left_and_another_started(
    brokers: Brokers, tmp_path: Path
) -> None:
    entry = {"up": server("shared.py", tmp_path / "pids", share=True, timeout_s=1)}
    large = {"text": "x" * 1_000_000}
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    async with (
        fleet(tmp_path / "one", entry, sharing=quick(), limits=IMPATIENT) as one,
        fleet(tmp_path / "other", entry, sharing=quick(), limits=IMPATIENT) as other,
    ):
        await one.call(f"{TOOL}stop")
        await one.failing(f"{TOOL}echo", large)
        texts = [await _pid_of_another(running, tmp_path) for running in (one, other)]

    assert texts[0] == texts[1] == str(pids(tmp_path / "pids")[1])
    until(lambda: not is_alive(pids(tmp_path / "pids")[0]))


async def _pid_of_another(running: Fleet, folder: Path) -> str:
    """What a call answers once the session has another process."""
    with anyio.fail_after(30):
        while True:
            with suppress(ToolError):
                text = (await running.call(f"{TOOL}pid")).text
                if text != str(pids(folder / "pids")[0]):
                    return text


async def test_a_restart_starts_it_again_and_leaves_the_calls_of_others_alone(brokers: Brokers, tmp_path: Path) -> None:
    slow: list[str] = []

    async def call(running: Fleet) -> None:
        slow.append((await running.call(f"{TOOL}slow", {"text": "done"})).text)

    first = second = ""
    async with sessions(tmp_path) as ours:
        one, other = ours.all
        before = (await other.call(f"{TOOL}pid")).text
        async with anyio.create_task_group() as group:
            group.start_soon(call, other)
            await other.until(lambda: other.status("up").calls_in_flight == 1)
            await one.upstreams.restarted("up", 15)
            first = (await one.call(f"{TOOL}pid")).text
        still = (await other.call(f"{TOOL}pid")).text
        await other.upstreams.restarted("up", 15)
        second = (await other.call(f"{TOOL}pid")).text
        until(lambda: not is_alive(int(before)))

    assert slow == ["done"]
    assert still == before
    assert first == second != before


async def test_a_process_is_kept_for_a_while_after_the_last_session_has_left(brokers: Brokers, tmp_path: Path) -> None:
    told: list[str] = []
    for _ in range(2):
        async with sessions(tmp_path, entries=1, sharing=quick(idle_s=2.0)) as ours:
            told.append((await ours.all[0].call(f"{TOOL}pid")).text)
            await anyio.sleep(2.5)  # longer than a process without sessions is kept
        await anyio.sleep(1.0)  # a look or two of the broker

    assert told[0] == told[1]


class _FullPipe:
    """Nobody reads what is written."""

    def __init__(self) -> None:
        self.is_full = True

    def post(self, message: object) -> bool:
        return True


async def test_requests_that_were_answered_into_a_full_pipe_stay_open_until_it_is_read() -> None:
    process = SharedProcess(SharedLaunch("x", (), (), "/"), lambda launch: open_shared(launch, None), lambda: False)
    marks, pipe = FaultMarks(), _FullPipe()
    link = process.link = StdioTransport(marks, FrameReader(marks))
    process._outbox = pipe  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    link.questions.add("p")

    process.frames.from_process(JSONRPCRequest(jsonrpc="2.0", id="p", method="ping"))
    while_full = set(link.questions)
    pipe.is_full = False
    process.show_status()

    assert while_full == {"p"}
    assert link.questions == set()


async def test_a_session_that_is_killed_while_its_process_does_not_read_is_noticed(
    brokers: Brokers, tmp_path: Path
) -> None:
    """The broker waits until the pipe takes more, and does not read that session's socket meanwhile."""
    entry = {"up": server("shared.py", tmp_path / "pids", share=True, timeout_s=30)}
    async with fleet(tmp_path, entry, sharing=quick()) as running:
        await running.call(f"{TOOL}stop")
        async with anyio.create_task_group() as group:
            group.start_soon(running.failing, f"{TOOL}echo", {"text": "x" * 1_000_000})
            await running.until(lambda: running.status("up").calls_in_flight == 1)
            await anyio.sleep(0.2)
            group.cancel_scope.cancel()

    until(lambda: not is_alive(pids(tmp_path / "pids")[0]))
