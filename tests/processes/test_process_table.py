"""The process table, from `/proc` and from `ps`, and what works without Linux's own means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from goat_mcp.core import platform
from goat_mcp.processes import process_table
from goat_mcp.processes.process_table import Process, living_process, living_processes
from tests.processes.processes import running
from tests.processes.test_running_command import Runner, unique_sleep

pytestmark = pytest.mark.posix_only("Unix processes")


def this_process(found: list[Process]) -> tuple[int, int, int]:
    (own,) = [process for process in found if process.pid == os.getpid()]
    return own.parent, own.group, own.session


def test_ps_and_proc_tell_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = (os.getppid(), os.getpgrp(), os.getsid(0))

    assert this_process(living_processes()) == expected
    monkeypatch.setattr(process_table, "HAS_PROC", False)
    assert this_process(living_processes()) == expected


def test_a_process_that_is_not_there_is_none() -> None:
    assert living_process(2**22 + 1) is None


@pytest.mark.anyio
async def test_a_tree_ends_without_proc_and_without_pidfd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = unique_sleep()
    runner = Runner(tmp_path)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(process_table, "HAS_PROC", False)
        elsewhere.setattr(platform, "HAS_PIDFD", False)
        command = runner.start(f"(sleep {sleep} & sleep {sleep}); echo not reached")
        command.end_at(0.3)
        assert await command.wait_gone(60)

    assert (command.exit_code, running("sleep", sleep)) == (143, [])
    runner.guard.close()
