"""The process table, and who is signalled, by `/proc` and by psutil."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from goat_mcp.processes.process_table import (
    Process,
    command_line,
    environment_contains,
    living_process,
    living_processes,
    start_clock,
)
from goat_mcp.processes.process_tree import send_signal
from tests.processes.processes import running, soon, wait_until, without_linux
from tests.processes.test_running_command import Runner, unique_sleep

pytestmark = pytest.mark.posix_only("Unix processes")


@pytest.fixture
def sleeper() -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", unique_sleep()], start_new_session=True, env={**os.environ, "MARK": "here"})
    assert wait_until(lambda: command_line(process.pid) != "")  # the kernel sets it a moment after the start
    yield process
    process.kill()
    process.wait(60)


def seen(pid: int) -> Process:
    (found,) = [process for process in living_processes() if process.pid == pid]
    assert found == living_process(pid)
    return found


@pytest.mark.linux_only("compares with what /proc says")
def test_psutil_and_proc_say_the_same(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    pids = (os.getpid(), sleeper.pid)
    by_proc = [replace(seen(pid), started=0) for pid in pids], [command_line(pid) for pid in pids]

    without_linux(monkeypatch)

    assert ([replace(seen(pid), started=0) for pid in pids], [command_line(pid) for pid in pids]) == by_proc


@pytest.mark.anyio
@pytest.mark.linux_only("only /proc says who holds a pipe")
async def test_one_without_session_parent_and_mark_is_known_by_its_pipe(tmp_path: Path) -> None:
    sleep, runner = unique_sleep(), Runner(tmp_path)
    command = runner.start(f"(env -i setsid sleep {sleep} &); sleep 1000")
    assert await soon(lambda: running("sleep", sleep) != [])

    await command.end()

    assert running("sleep", sleep) == []
    runner.guard.close()


@pytest.mark.usefixtures("kernel")
def test_a_process_that_is_not_there_or_has_ended_is_none() -> None:
    zombie = subprocess.Popen(["true"])

    assert wait_until(lambda: living_process(zombie.pid) is None)
    assert living_process(2**22 + 1) is None
    assert zombie.pid not in [process.pid for process in living_processes()]
    zombie.wait(60)


@pytest.mark.usefixtures("kernel")
def test_a_process_has_started_after_the_clock_was_read() -> None:
    before = start_clock()
    process = subprocess.Popen(["sleep", "60"])

    try:
        assert before <= seen(process.pid).started
    finally:
        process.kill()
        process.wait(60)


@pytest.mark.usefixtures("kernel")
def test_the_environment_is_searched(sleeper: subprocess.Popen[bytes]) -> None:
    assert environment_contains(sleeper.pid, b"MARK=here")
    assert not environment_contains(sleeper.pid, b"MARK=there")
    assert not environment_contains(2**22 + 1, b"MARK=here")


@pytest.mark.usefixtures("kernel")
def test_a_process_that_has_got_the_number_of_another_is_not_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    now = seen(sleeper.pid)

    send_signal(replace(now, started=now.started - 1), signal.SIGKILL)
    # SIGKILL would have ended it before it sees this.
    send_signal(now, signal.SIGTERM)

    assert sleeper.wait(60) == -signal.SIGTERM
