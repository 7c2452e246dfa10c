"""A writer killed at any moment leaves the whole old file or the whole new one, and what it left is cleared up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from goat_mcp.files.workspace import AnyVersion, Workspace
from goat_mcp.files.workspace.temp_files import GRACE_S, is_temp_name
from tests.files.workspace.conftest import names_in
from tests.repetitions import times

SIZE_BYTES = 50 * 1024 * 1024
KILLS = times(6, in_full_run=100)
MORE_KILLS = 30
"""Where none of them came in time: a busy machine may be slow to kill, and find the write done."""
START_LIMIT_S = 60.0

WRITER = """
import sys
from pathlib import Path
from goat_mcp.files.workspace import AnyVersion, Workspace

top, locks, size = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
workspace = Workspace(top, lock_folder=locks)
path = workspace.resolve("@file")
for turn in range(1000):
    workspace.write_file(path, bytes([65 + turn % 26]) * size, expect=AnyVersion())
"""


def start_writer(top: Path, locks: Path, size: int = SIZE_BYTES) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(top), str(locks), str(size)])


def wait_for_temp(top: Path) -> str:
    """Until a write is under way; its temporary file's name."""
    limit_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit_s:
        for name in names_in(top):
            if is_temp_name(name):
                return name
    raise AssertionError("the writer did not start")


def stop_in_a_write(writer: subprocess.Popen[bytes], top: Path) -> list[str]:
    """Stop the process while it fills its temporary file; the file's name."""
    limit_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit_s:
        wait_for_temp(top)
        writer.send_signal(signal.SIGSTOP)
        os.waitpid(writer.pid, os.WUNTRACED)  # a signal only asks: the system call under way still ends
        filled = [name for name in names_in(top) if is_temp_name(name) and (top / name).stat().st_size > 0]
        if filled:
            return filled
        writer.send_signal(signal.SIGCONT)
    raise AssertionError("the writer was never stopped in a write")


def kill(writer: subprocess.Popen[bytes]) -> None:
    writer.send_signal(signal.SIGKILL)
    writer.wait(60)


@pytest.mark.chaos
def test_a_killed_writer_leaves_a_whole_file_and_the_next_start_clears_up(tmp_path: Path) -> None:
    top, locks = tmp_path / "ws", tmp_path / "locks"
    top.mkdir()
    (top / "file").write_bytes(b"A" * SIZE_BYTES)
    left_at_least_once = False

    for turn in range(KILLS + MORE_KILLS):
        if turn >= KILLS and left_at_least_once:
            break
        writer = start_writer(top, locks)
        wait_for_temp(top)
        # from the first byte to the rename: each turn a little later
        time.sleep(turn % 12 * 0.012 if turn < KILLS else 0)
        kill(writer)
        content = (top / "file").read_bytes()
        left_at_least_once |= names_in(top) != ["file"]

        assert len(content) == SIZE_BYTES
        assert content == content[:1] * SIZE_BYTES
        Workspace(top, lock_folder=locks)
        assert names_in(top) == ["file"]
        assert names_in(locks) == []

    assert left_at_least_once


@pytest.mark.chaos
def test_a_write_beside_it_clears_up_what_no_note_tells_of(tmp_path: Path) -> None:
    top = tmp_path / "ws"
    top.mkdir()
    writer = start_writer(top, tmp_path / "other-locks")
    wait_for_temp(top)
    kill(writer)
    workspace = Workspace(top, lock_folder=tmp_path / "locks")

    workspace.write_file(workspace.resolve("@file"), b"x", expect=AnyVersion())

    assert names_in(top) == ["file"]


@pytest.mark.chaos
def test_the_unfinished_write_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    top, locks = tmp_path / "ws", tmp_path / "locks"
    top.mkdir()
    writer = start_writer(top, locks)
    try:
        under_way = stop_in_a_write(writer, top)
        for name in under_way:  # however long it takes
            os.utime(top / name, (1, 1))

        workspace = Workspace(top, lock_folder=locks)
        workspace.write_file(workspace.resolve("@another"), b"x", expect=AnyVersion())

        assert [name for name in names_in(top) if is_temp_name(name)] == under_way
    finally:
        kill(writer)


@pytest.mark.parametrize(
    ("name", "age_s", "stays"),
    [
        (f".goat-mcp-{2**22 + 1}-0123456789abcdef.tmp", 0, False),
        (f".goat-mcp-{os.getpid()}-0123456789abcdef.tmp", 0, True),
        (f".goat-mcp-{os.getpid()}-0123456789abcdef.tmp", GRACE_S + 60, False),
        (".goat-mcp-notes.tmp", GRACE_S + 60, True),
        (".goat-mcp-1-0123456789abcdef.tmp.py", GRACE_S + 60, True),
    ],
    ids=[
        "its process is gone",
        "just made",
        "its process number was used again",
        "a user's file",
        "another user's file",
    ],
)
def test_only_abandoned_files_are_removed(tmp_path: Path, name: str, age_s: float, stays: bool) -> None:
    (tmp_path / "ws").mkdir()
    file = tmp_path / "ws" / name
    file.write_bytes(b"half")
    os.utime(file, (time.time() - age_s, time.time() - age_s))
    workspace = Workspace(tmp_path / "ws", lock_folder=tmp_path / "locks")

    workspace.write_file(workspace.resolve("@a"), b"x", expect=None)

    assert file.exists() == stays


def test_a_note_never_leads_to_a_file_outside(tmp_path: Path) -> None:
    top, out, locks = tmp_path / "ws", tmp_path / "out", tmp_path / "locks"
    for folder in (top, out):
        folder.mkdir()
    locks.mkdir(mode=0o700)
    abandoned = f".goat-mcp-{2**22 + 1}-0123456789abcdef.tmp"
    (out / abandoned).write_bytes(b"not mine")
    (top / "link").symlink_to(out)
    for number, noted in enumerate((out / abandoned, top / "link" / abandoned, top / "file")):
        (locks / f"{2**22 + 1}-{number}.note").write_bytes(os.fsencode(noted))
    (top / "file").write_bytes(b"mine")

    Workspace(top, lock_folder=locks)

    assert names_in(out) == [abandoned]
    assert names_in(top) == ["file", "link"]
