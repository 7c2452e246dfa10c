"""TaskStop as a caller sees it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ToolError
from goat_mcp.core.side_effect import Hints, SideEffect
from tests.processes.processes import running
from tests.tools.shell_bench import ShellBench, context, fact

pytestmark = [pytest.mark.anyio, pytest.mark.posix_only("needs bash")]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[ShellBench]:
    bench = ShellBench(tmp_path)
    yield bench
    await bench.close()


async def test_a_stopped_task_is_gone_with_all_it_started(bench: ShellBench) -> None:
    sleep = f"5{secrets.randbelow(10**9):09d}"
    command = f"trap '' TERM; echo before; setsid sleep {sleep} & sleep {sleep}; wait"
    task = await bench.background(command)
    await bench.until_printed(task, "before\n")

    result = await bench.end(task)

    assert running("sleep", sleep) == []
    assert result.text == f"Stopped task {task} ({command}).\nbefore"
    assert result.facts == {"task_id": task, "task_type": "shell", "command": command, "status": "stopped"}


async def test_the_output_of_a_stopped_task_is_kept(bench: ShellBench) -> None:
    task = await bench.background("echo before; sleep 600")
    await bench.until_printed(task, "before\n")
    await bench.end(task)

    result = await bench.read(task)

    assert result.text.splitlines()[1] == "before"
    assert fact(result, "status") == "stopped"


async def test_a_task_that_has_ended_is_only_a_notice(bench: ShellBench) -> None:
    task = await bench.background("true")
    await bench.read(task)

    result = await bench.end(task)

    assert not result.is_error
    assert result.text == f"Task {task} (true) is not running.\n[it has ended already: completed]"


async def test_unknown_and_foreign_tasks_cannot_be_stopped(bench: ShellBench) -> None:
    task = await bench.background("sleep 60")

    unknown = await bench.end("nope")
    foreign = await bench.end(task, ctx=context(principal="somebody else"))

    assert (unknown.error_code, foreign.error_code) == ("E_TASK_UNKNOWN", "E_TASK_UNKNOWN")
    assert [one.id for one in bench.tasks.running()] == [task]


@pytest.mark.parametrize("arguments", [{}, {"task_id": None}, {"task_id": "a", "shell_id": "b"}])
async def test_one_id_is_needed(bench: ShellBench, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        bench.stop.validate(arguments)


async def test_the_old_name_of_the_id_works(bench: ShellBench) -> None:
    assert bench.stop.validate({"shell_id": "a"}).shell_id == "a"


async def test_the_specification_says_it_ends_something(bench: ShellBench) -> None:
    spec = bench.stop.spec

    assert (spec.side_effect, spec.toolset) == (SideEffect.BLOCKING, "tasks")
    assert spec.hints == Hints(read_only=False, destructive=True, idempotent=True, open_world=False)
