"""One process of a stdio upstream for all replicas: who owns it, the way to it, and what happens when its owner dies
or is stopped. Real replicas and a real Redis; the upstream counts its own effects."""

from __future__ import annotations

import signal
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.e2e.goat import connected, listed_with
from tests.e2e.replicas import LEASE_S, WITHIN_S, Team, called, descendants, team, until

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.real_processes]
NAMES = ("one", "two", "three")
TOOLS = ("mcp__up__add", "mcp__up__read")


async def clients(ours: Team, stack: AsyncExitStack, mode: str = "2026-07-28") -> dict[str, Client]:
    found: dict[str, Client] = {}
    for name, goat in ours.goats.items():
        found[name] = await stack.enter_async_context(connected(goat, mode))
        await listed_with(found[name], *TOOLS)
    return found


async def again(client: Client, tool: str) -> int:
    """Call it until somebody owns the process again."""
    with anyio.fail_after(WITHIN_S):
        while not (text := await called(client, tool)).isdigit():  # noqa: ASYNC110  # it happens in another process
            await anyio.sleep(0.1)
        return int(text)


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_all_replicas_use_one_process(tmp_path: Path, mode: str) -> None:
    async with AsyncExitStack() as stack:
        ours = stack.enter_context(team(tmp_path, *NAMES))
        of = await clients(ours, stack, mode)
        told: list[float] = []

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            told.append(progress)

        pids = {await called(of[name], "read") for name in NAMES}
        (pid,) = pids
        owner = ours.owner_of(int(pid))
        other = next(name for name in NAMES if name != owner)
        await of[other].call_tool("mcp__up__slow", {}, progress_callback=heard)
        before = ours.redis.commands()
        for text in "abc":
            await called(of[owner], "add", text=text)
        asked = ours.redis.commands() - before

    assert {1, 2, 3} <= set(told)
    assert ours.effects() == ["a", "b", "c"]
    # Leases are renewed beside: a few commands a second, however many calls there are.
    assert asked < 20


async def test_a_plain_call_asks_the_shared_state_nothing(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        ours = stack.enter_context(team(tmp_path, "one", "two"))
        of = await clients(ours, stack)
        owner = ours.owner_of(int(await called(of["one"], "read")))
        for client in of.values():
            await called(client, "read")
        ours.redis.stop()  # with nobody to ask, calls still go on within the lease

        answers = [await called(of[owner], "add", text=str(number)) for number in range(5)]

    assert all(answer.isdigit() for answer in answers)
    assert ours.effects() == [str(number) for number in range(5)]


async def test_a_killed_owner_is_followed_by_another_and_nothing_is_done_twice(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        ours = stack.enter_context(team(tmp_path, *NAMES))
        of = await clients(ours, stack)
        first = int(await called(of["one"], "read"))
        owner = ours.owner_of(first)
        one, two = (name for name in NAMES if name != owner)
        answers: dict[str, str] = {}

        async def hold(name: str) -> None:
            answers[name] = await called(of[name], "hold", text=name)

        async with anyio.create_task_group() as group:
            group.start_soon(hold, one)
            group.start_soon(hold, two)
            await anyio.to_thread.run_sync(lambda: until(lambda: len(ours.effects()) == 2))
            ours.send(owner, signal.SIGKILL)
        (ours.counted / "go").touch()
        second = await again(of[one], "read")
        same = await again(of[two], "read")
        now_owner = ours.owner_of(second)

    assert second == same != first
    assert now_owner in (one, two)
    assert sorted(ours.effects()) == sorted([one, two])
    assert all("E_OUTCOME_UNKNOWN" in text and "may have taken effect" in text for text in answers.values())


async def test_a_call_that_only_reads_is_made_again_at_the_next_owner(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        ours = stack.enter_context(team(tmp_path, "one", "two"))
        of = await clients(ours, stack)
        first = await called(of["one"], "read")
        owner = ours.owner_of(int(first))
        (other,) = {"one", "two"} - {owner}
        answers: list[str] = []

        async def look() -> None:
            answers.append(await called(of[other], "look"))

        async with anyio.create_task_group() as group:
            group.start_soon(look)
            await anyio.to_thread.run_sync(lambda: until((ours.counted / "waiting").exists))
            ours.send(owner, signal.SIGKILL)
            (ours.counted / "go").touch()

    assert answers[0].isdigit() and answers[0] != first


async def test_an_owner_that_was_stopped_past_its_lease_ends_its_process_and_writes_nothing(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        ours = stack.enter_context(team(tmp_path, "one", "two"))
        of = await clients(ours, stack)
        first = int(await called(of["one"], "read"))
        owner = ours.owner_of(first)
        (other,) = {"one", "two"} - {owner}
        second = 0
        late: list[str] = []
        is_connected, is_stopped = anyio.Event(), anyio.Event()

        async def call_the_stopped_one() -> None:
            try:
                async with connected(ours.goats[owner], "2026-07-28") as client:
                    await listed_with(client, *TOOLS)
                    is_connected.set()
                    await is_stopped.wait()
                    late.append(await called(client, "add", text="late"))
            except* (MCPError, httpx2.TransportError) as lost:  # an error, or a connection that was cut, says enough
                late.append(str(lost))

        async with anyio.create_task_group() as group:
            group.start_soon(call_the_stopped_one)  # it waits in the socket of the stopped replica
            with anyio.fail_after(WITHIN_S):
                await is_connected.wait()
            ours.send(owner, signal.SIGSTOP)
            is_stopped.set()
            second = await again(of[other], "read")
            await called(of[other], "add", text="new")
            await anyio.sleep(LEASE_S)
            ours.send(owner, signal.SIGCONT)
        await anyio.to_thread.run_sync(lambda: until(lambda: first not in descendants(ours.goats[owner].process.pid)))
        after = await again(await stack.enter_async_context(connected(ours.goats[owner], "2026-07-28")), "read")
        lines = (ours.counted / "effects").read_text().splitlines()

    assert late
    assert second != first
    assert after == second
    assert f"{first} late" not in lines
    assert [line for line in lines if line.startswith(f"{first} ")] == []
    assert lines.count(f"{second} new") == 1
    assert lines.count(f"{second} late") <= 1


async def test_an_entry_that_gives_each_its_own_process_keeps_that(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        ours = stack.enter_context(team(tmp_path, "one", "two", share=False))
        of = await clients(ours, stack)

        pids = {await called(of[name], "read") for name in of}

    assert len(pids) == 2
