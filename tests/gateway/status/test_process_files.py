"""What processes leave for others to read, and what becomes of files whose process is gone."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.state.directory import StateDirectory


@pytest.fixture
def files(tmp_path: Path) -> ProcessFiles:
    return ProcessFiles(StateDirectory(tmp_path))


def a_dead_pid() -> int:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait(30)
    return done.pid


def test_what_a_process_wrote_is_found_while_it_runs_and_is_private(files: ProcessFiles) -> None:
    files.write({"pid": os.getpid(), "version": "1"})

    (found,) = files.running()

    assert (found["pid"], found["version"]) == (os.getpid(), "1")
    assert stat.S_IMODE(files.own_path.stat().st_mode) == 0o600
    files.remove()
    assert files.running() == []


def test_a_file_of_a_dead_process_is_never_shown_and_is_cleared_away(files: ProcessFiles) -> None:
    pid = a_dead_pid()
    left = files.own_path.with_name(f"{pid}.json")
    left.write_text(json.dumps({"pid": pid, "process_started": 0}))
    half = files.own_path.with_name(f".{pid}.json.0123abcd")
    half.write_text("{")

    assert files.running() == []
    assert not left.exists() and not half.exists()


def test_a_number_that_another_process_has_by_now_is_not_taken_for_the_old_one(files: ProcessFiles) -> None:
    files.own_path.write_text(json.dumps({"pid": os.getpid(), "process_started": 1}))

    assert files.running() == []


@pytest.mark.parametrize("content", ["", "[]", "{", '{"pid": "x"}', "\xff"])
def test_a_file_that_holds_no_status_is_passed_over(files: ProcessFiles, content: str) -> None:
    files.own_path.write_bytes(content.encode("latin-1"))

    assert files.running() == []
