"""A process that stood still knows it before it reads what came meanwhile."""

from __future__ import annotations

import anyio
import pytest

from goat_mcp.state.replicas.stall import StallDetector

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(
    ("stood_s", "is_held", "is_stalled"), [(3.1, False, True), (3.1, True, False), (2.9, False, False)]
)
async def test_it_counts_if_the_lease_ran_out_in_it(stood_s: float, is_held: bool, is_stalled: bool) -> None:
    clock = Clock()
    stall = StallDetector(3.0, lambda: is_held, clock)

    async with anyio.create_task_group() as group:
        group.start_soon(stall.run)
        await anyio.wait_all_tasks_blocked()
        clock.now_s += stood_s
        assert stall.is_stalled is is_stalled
        group.cancel_scope.cancel()


async def test_it_stays_until_the_others_know_the_process_again() -> None:
    clock, held = Clock(), False
    stall = StallDetector(0.05, lambda: held, clock)

    async with anyio.create_task_group() as group:
        group.start_soon(stall.run)
        await anyio.wait_all_tasks_blocked()
        clock.now_s += 1
        await anyio.sleep(0.1)  # beats
        assert stall.is_stalled
        held = True
        assert stall.is_stalled
        stall.recovered()
        assert not stall.is_stalled
        group.cancel_scope.cancel()
