"""goa's table of conflicts, and the order calls run in."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from goat_mcp.calls.scheduler import Scheduler
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.tool import Access

pytestmark = pytest.mark.anyio

READ_A, READ_B = Access(reads=("/a",)), Access(reads=("/b",))
WRITE_A, WRITE_B = Access(writes=("/a",)), Access(writes=("/b",))
SHELL = Access(category="shell")


@pytest.mark.parametrize(
    ("first", "second", "parallel"),
    [
        (READ_A, READ_B, True),
        (READ_A, READ_A, True),
        (READ_A, WRITE_B, True),
        (READ_A, WRITE_A, False),
        (WRITE_A, READ_A, False),
        (WRITE_A, WRITE_A, False),
        (WRITE_A, WRITE_B, True),
        (SHELL, SHELL, False),
        (SHELL, READ_A, True),
        (Access(), Access(), True),
    ],
)
async def test_goas_table(first: Access, second: Access, parallel: bool) -> None:
    scheduler = Scheduler()
    entered = False

    async def enter_second() -> None:
        nonlocal entered
        async with scheduler.slot(second, session_key="s", max_wait_s=5):
            entered = True

    async with anyio.create_task_group() as group, scheduler.slot(first, session_key="s", max_wait_s=5):
        group.start_soon(enter_second)
        await anyio.wait_all_tasks_blocked()
        assert entered is parallel
    assert entered


async def test_shells_of_two_sessions_do_not_wait_for_each_other() -> None:
    scheduler = Scheduler()

    async with scheduler.slot(SHELL, session_key="one", max_wait_s=1):
        with anyio.fail_after(60):
            async with scheduler.slot(SHELL, session_key="two", max_wait_s=60):
                pass


async def test_conflicting_calls_run_in_the_order_they_arrived() -> None:
    scheduler = Scheduler()
    order: list[int] = []

    async def run(number: int) -> None:
        async with scheduler.slot(WRITE_A, session_key="s", max_wait_s=5):
            order.append(number)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group, scheduler.slot(WRITE_A, session_key="s", max_wait_s=5):
        for number in range(5):
            group.start_soon(run, number)
            await anyio.wait_all_tasks_blocked()
    assert order == [0, 1, 2, 3, 4]


async def test_who_waits_too_long_is_told_that_the_resource_is_busy() -> None:
    scheduler = Scheduler()

    async with scheduler.slot(SHELL, session_key="s", max_wait_s=1):
        with pytest.raises(ToolError) as caught:
            async with scheduler.slot(SHELL, session_key="s", max_wait_s=0.01):
                pytest.fail("ran beside another shell command")
    assert caught.value.code is ErrorCode.BUSY


async def test_a_call_that_gives_up_leaves_the_way_free() -> None:
    scheduler = Scheduler()

    async with scheduler.slot(WRITE_A, session_key="s", max_wait_s=1):
        with anyio.move_on_after(0.01):
            async with scheduler.slot(WRITE_A, session_key="s", max_wait_s=5):
                pass
    with anyio.fail_after(60):
        async with scheduler.slot(WRITE_A, session_key="s", max_wait_s=5):
            pass
