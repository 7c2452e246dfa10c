"""TaskOutput as a caller sees it."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from goat_mcp.core.side_effect import Hints, SideEffect
from tests.tools.shell_bench import ShellBench, context, fact

pytestmark = [pytest.mark.anyio, pytest.mark.posix_only("needs bash")]
SECONDS = r"\d+\.\d"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[ShellBench]:
    bench = ShellBench(tmp_path)
    yield bench
    await bench.close()


async def test_task_001_a_task_from_its_start_to_its_end(bench: ShellBench) -> None:
    task = await bench.background("echo 1; until [ -e go ]; do sleep 0.05; done; echo 2; echo 3")
    await bench.until_printed(task, "1\n")

    running = await bench.read(task, block=False)
    (bench.root / "go").touch()
    ended = await bench.read(task, block=True)
    again = await bench.read(task)

    assert re.fullmatch(rf"Task {task}: running, {SECONDS} s\n1\n\[output file: \S+\]", running.text)
    assert re.fullmatch(rf"Task {task}: completed, exit code 0, {SECONDS} s\n1\n2\n3\n\[output file: \S+\]", ended.text)
    assert again.text == ended.text
    assert (fact(ended, "status"), fact(ended, "exit_code"), fact(ended, "task_type")) == ("completed", 0, "shell")


async def test_while_a_task_runs_only_what_is_new_is_shown(bench: ShellBench) -> None:
    task = await bench.background("echo one; until [ -e go ]; do sleep 0.05; done; echo two; sleep 600")
    await bench.until_printed(task, "one\n")

    parts = [(await bench.read(task, block=False)).text.splitlines()[1:-1] for _ in range(2)]
    other = await bench.read(task, block=False, ctx=context(session_key="other"))
    (bench.root / "go").touch()
    await bench.until_printed(task, "one\ntwo\n")
    parts.append((await bench.read(task, block=False)).text.splitlines()[1:-1])

    assert parts == [["one"], ["(no new output)"], ["two"]]
    assert "one" in other.text


async def test_a_task_lasts_as_long_as_anything_the_command_started(bench: ShellBench) -> None:
    task = await bench.background("(sleep 0.8; echo late) & echo early")

    text = (await bench.read(task)).text

    assert re.fullmatch(rf"Task {task}: completed, exit code 0, {SECONDS} s\nearly\nlate\n\[output file: \S+\]", text)


async def test_task_003_a_task_that_runs_longer_than_the_wait_is_no_error(bench: ShellBench) -> None:
    task = await bench.background("sleep 600")
    before_s = time.monotonic()

    result = await bench.read(task, block=True, timeout=500)

    assert time.monotonic() - before_s > 0.45
    assert (result.is_error, fact(result, "status")) == (False, "running")
    assert [one.id for one in bench.tasks.running()] == [task]


async def test_a_wait_ends_in_time_for_the_host(bench: ShellBench) -> None:
    task = await bench.background("sleep 600")

    with anyio.fail_after(30):  # it would be 45 s, had the call just begun
        result = await bench.read(task, timeout=600_000, ctx=context(started_at_s=time.monotonic() - 44.7))

    assert fact(result, "status") == "running"


async def test_a_wait_reports_progress(bench: ShellBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goat_mcp.tools.task_output.HEARTBEAT_S", 0.1)
    seen: list[float] = []

    async def progress(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        seen.append(done)

    task = await bench.background("sleep 600")
    await bench.read(task, timeout=2000, ctx=context(progress=progress, wants_progress=True))

    assert len(seen) >= 3 and seen == sorted(set(seen))


@pytest.mark.parametrize(
    ("command", "timeout", "header"),
    [
        ("exit 3", None, "failed, exit code 3, "),
        ("kill -9 $$", None, "failed, exit code 137, ended by SIGKILL, "),
        ("sleep 60", 100, "failed, exit code 143, timed out after 0.1 s, "),
    ],
)
async def test_a_failed_task_says_why(bench: ShellBench, command: str, timeout: int | None, header: str) -> None:
    task = await bench.background(command, timeout=timeout)

    assert (await bench.read(task)).text.startswith(f"Task {task}: {header}")


async def test_bx_27_of_a_large_output_head_and_tail_are_shown(bench: ShellBench) -> None:
    task = await bench.background("echo first; yes | head -c 100000000; echo last")

    text = (await bench.read(task)).text

    assert len(text) <= 30_000
    body = text.splitlines()
    assert (body[1], body[-2]) == ("first", "last")
    assert "cut; the first 67108864 of 100000011 bytes are in" in text


@pytest.mark.parametrize("task_id", ["zzz", "../../etc/passwd", "", "a" * 5000, "\0"])
async def test_task_005_bx_23_an_unknown_id_lists_the_running_tasks(bench: ShellBench, task_id: str) -> None:
    known = await bench.background("sleep 60")

    result = await bench.read(task_id, block=False, timeout=0)

    assert result.error_code == "E_TASK_UNKNOWN"
    assert f"Running tasks: {known} (sleep 60)." in result.text


async def test_bx_25_another_principals_task_is_unknown(bench: ShellBench) -> None:
    task = await bench.background("sleep 60")

    result = await bench.read(task, ctx=context(principal="somebody else"))

    assert result.error_code == "E_TASK_UNKNOWN"
    assert "No background task is running." in result.text


async def test_old_names_of_the_id_work(bench: ShellBench) -> None:
    assert bench.output.validate({"bash_id": "x", "block": "false"}).task_id == "x"
    assert bench.output.validate({"shell_id": "x"}).block is True


async def test_the_specification_says_it_only_reads(bench: ShellBench) -> None:
    spec = bench.output.spec

    assert (spec.side_effect, spec.toolset) == (SideEffect.READ_ONLY, "tasks")
    assert spec.hints == Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
    assert spec.meta == {"anthropic/maxResultSizeChars": 30_000}
