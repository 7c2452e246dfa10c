"""One run of a program, and that nothing of it is left."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.process_table import command_line, environment_contains, living_processes
from goat_mcp.processes.program import DRAIN_S, ProgramEnd, run_program
from tests.processes.processes import wait_until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("kernel")]


@pytest.fixture
def guard() -> Generator[ProcessGuard]:
    guard = ProcessGuard()
    yield guard
    guard.close()


class Run:
    """A Python program in a directory of its own."""

    def __init__(self, folder: Path, guard: ProcessGuard) -> None:
        self.folder = folder
        self.guard = guard
        self.output = b""
        self.printed = anyio.Event()

    async def __call__(
        self, program: str, data: bytes = b"", timeout_s: float = 60, drain_s: float = DRAIN_S
    ) -> ProgramEnd:
        def on_output(piece: bytes) -> None:
            self.output += piece
            self.printed.set()

        return await run_program(
            [sys.executable, "-c", program],
            data=data,
            directory=self.folder,
            environment={"PATH": os.environ["PATH"], "MARK": str(self.folder)},
            guard=self.guard,
            on_output=on_output,
            timeout_s=timeout_s,
            drain_s=drain_s,
        )

    def left(self) -> list[str]:
        mark = f"MARK={self.folder}".encode()

        def found() -> list[str]:
            return [command_line(one.pid) for one in living_processes() if environment_contains(one.pid, mark)]

        wait_until(lambda: not found())
        return found()


@pytest.fixture
def run(tmp_path: Path, guard: ProcessGuard) -> Run:
    return Run(tmp_path, guard)


async def test_input_goes_in_whole_and_output_comes_out_whole(run: Run) -> None:
    data = b"x" * 1_000_000 + b"\n"

    end = await run("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()); print('oh', file=sys.stderr)", data)

    assert end == ProgramEnd(0, "oh")
    assert run.output == data


async def test_how_it_ended_and_the_last_of_what_it_complained_of(run: Run) -> None:
    end = await run("import sys; sys.stderr.write('a' * 20_000 + 'the reason'); sys.exit(3)")

    assert (end.exit_code, len(end.stderr_tail)) == (3, 8192)
    assert end.stderr_tail.endswith("the reason")
    assert (await run("import os; os.kill(os.getpid(), 9)")).exit_code == -9


async def test_a_program_that_does_not_read_is_no_failure(run: Run) -> None:
    assert await run("import os; os.close(0); print('done')", b"x" * 1_000_000) == ProgramEnd(0, "")


async def test_what_it_leaves_running_with_its_output_open_is_ended(run: Run) -> None:
    child = "import time; time.sleep(600)"
    end = await run(f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]); print('left one')")

    assert (end, run.output) == (ProgramEnd(0, ""), b"left one\n")
    assert run.left() == []


async def test_one_that_is_done_in_time_has_not_timed_out_whatever_it_leaves(run: Run) -> None:  # R-PROC-6
    child = "import time; time.sleep(600)"
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]); print('done')"

    end = await run(program, timeout_s=3, drain_s=3.5)

    assert (end, run.output) == (ProgramEnd(0, ""), b"done\n")


async def test_its_time_is_limited(run: Run) -> None:
    end = await run("import time; print('on my way', flush=True); time.sleep(600)", timeout_s=3)

    assert end.timed_out
    assert run.left() == []


async def test_a_cancelled_run_ends_all_of_it_even_what_will_not_hear(run: Run) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    )
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {deaf!r}], start_new_session=True)"

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run, program)
            await run.printed.wait()
            group.cancel_scope.cancel()

    assert run.left() == []


async def test_a_program_that_cannot_be_started_says_so(run: Run) -> None:
    with pytest.raises(FileNotFoundError):
        await run_program(
            ["/no/such/program"],
            data=b"",
            directory=run.folder,
            environment={},
            guard=run.guard,
            on_output=lambda piece: None,
            timeout_s=5,
        )
