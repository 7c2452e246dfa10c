"""One chain in one record: over processes, rotations and crashes."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from goat_mcp.calls.audit import AuditLog, chain
from goat_mcp.calls.audit.chain import ChainFile, rotated_files
from goat_mcp.calls.audit.verify import verify
from goat_mcp.core.context import ToolContext
from tests.calls.audit.records import lines_of, write_calls

WRITER = """
import sys
from functools import partial
from pathlib import Path
from goat_mcp.core.context import ToolContext
from tests.calls.audit.records import write_calls
print("ready", flush=True)
sys.stdin.readline()
write_calls(Path(sys.argv[1]), int(sys.argv[2]), first=int(sys.argv[3]), max_bytes=int(sys.argv[4]), kept_files=1000)
"""


def writer(path: Path, count: int, first: int = 0, max_bytes: int = 1 << 26) -> subprocess.Popen[str]:
    """A process that writes `count` calls once it reads a line."""
    command = [sys.executable, "-c", WRITER, str(path), str(count), str(first), str(max_bytes)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.close()


@pytest.mark.parametrize("max_bytes", [1 << 26, 20_000])
def test_R_AUDIT_3_processes_that_write_at_the_same_time_make_one_chain(tmp_path: Path, max_bytes: int) -> None:
    path = tmp_path / "audit.jsonl"
    writers = [writer(path, 300, first=1000 * number, max_bytes=max_bytes) for number in range(4)]
    for process in writers:
        go(process)
    assert [process.wait(60) for process in writers] == [0] * 4

    found = verify(path)
    assert (found.bad, found.gaps) == (None, [])
    assert (found.first_seq, found.last_seq) == (1, found.events)
    files = [file for _, file in rotated_files(path)] + [path]
    events = [line for file in files for line in lines_of(file)]
    assert sum(line["event"] != "rotated" for line in events) == 4 * 300 * 2
    assert {line["call_id"] for line in events if line["event"] == "outcome"} == {
        f"call-{1000 * number + call}" for number in range(4) for call in range(300)
    }
    assert (len(files) > 10) == (max_bytes == 20_000)


def test_AU_12_a_file_that_is_full_is_kept_whole_and_the_chain_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_calls(path, 100, max_bytes=5_000, kept_files=3)

    kept = [file for _, file in rotated_files(path)]
    found = verify(path)
    assert len(kept) == 3
    assert found.files == [*(file.name for file in kept), "audit.jsonl"]
    assert found.bad is None and found.first_seq > 1
    assert found.last_seq > 200  # the rotations are on record, too
    for file in [*kept, path]:
        assert 0 < file.stat().st_size <= 5_000
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.read_bytes().endswith(b"\n")
        assert lines_of(file)[0]["event"] == "rotated"


def test_a_rotation_that_was_interrupted_goes_on_from_the_kept_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_calls(path, 3)
    path.rename(tmp_path / "audit.000001.jsonl")  # and no new file: the process was killed here
    write_calls(path, 1)

    found = verify(path)
    assert (found.bad, found.first_seq, found.last_seq) == (None, 1, 9)
    assert lines_of(path)[0] | {"ts": "", "prev": "", "pid": 0} == {
        "ts": "",
        "seq": 7,
        "prev": "",
        "event": "rotated",
        "file": 2,
        "oldest": 1,
        "pid": 0,
    }


@pytest.mark.parametrize("torn", [b"{", b'{"ts":"2026', b'{"ts":"x","seq":3,"prev":"y","event":"outcome"}'])
def test_R_AUDIT_5_a_torn_line_is_marked_by_the_next_writer(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "audit.jsonl"
    write_calls(path, 1)
    with path.open("ab") as file:
        file.write(torn)
    assert [gap.location for gap in verify(path).gaps] == ["audit.jsonl:3"]  # before anybody has marked it

    write_calls(path, 1)

    found = verify(path)
    assert (found.bad, found.last_seq) == (None, 5)
    assert [(gap.location, gap.problem) for gap in found.gaps] == [
        ("audit.jsonl:4", f"a line of {len(torn)} bytes before this one was not written whole")
    ]


def test_R_AUDIT_5_a_writer_that_is_killed_leaves_a_record_that_verifies(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for _ in range(100):
        child = os.fork()
        if child == 0:
            try:
                write_calls(path, 1_000_000)
            finally:
                os._exit(1)
        size = path.stat().st_size if path.exists() else 0
        while (path.stat().st_size if path.exists() else 0) < size + 2_000:
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    write_calls(path, 1)

    found = verify(path)
    assert found.bad is None
    assert found.events >= 100 * 6
    assert len(found.gaps) <= 100


def test_a_process_that_stopped_while_it_wrote_does_not_hold_up_others_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "LOCK_WAIT_S", 0.01)
    path = tmp_path / "audit.jsonl"
    write_calls(path, 1)
    held = os.open(path, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)

    with pytest.raises(OSError, match="another process holds the file"):
        ChainFile(path, max_bytes=1 << 20, kept=1).append({"event": "x"})

    os.close(held)
    ChainFile(path, max_bytes=1 << 20, kept=1).append({"event": "x"})
    assert verify(path).bad is None


@pytest.mark.parametrize("how", ["cut", "deleted"])
def test_a_running_writer_notices_that_its_lines_are_gone(tmp_path: Path, how: str) -> None:
    path = tmp_path / "audit.jsonl"
    file = ChainFile(path, max_bytes=1 << 20, kept=1)
    for _ in range(5):
        file.append({"event": "x"})
    if how == "cut":
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    else:
        path.unlink()
    file.append({"event": "x"})

    found = verify(path)
    assert found.bad is not None
    assert found.bad.problem.startswith("lines are gone: number 5 was there when process")


def test_nothing_is_recorded_without_a_file() -> None:
    AuditLog(None).check()


@pytest.mark.anyio
async def test_the_event_loop_goes_on_while_another_process_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_calls(path, 1)
    log = AuditLog(path)
    held = os.open(path, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    ended: list[str] = []

    async def record(call_id: str) -> None:
        await log.off_loop(partial(log.outcome, "Read", ToolContext(call_id=call_id), error_code=None))
        ended.append(call_id)

    waited_for: list[str] | None = None
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(record, "one")
            group.start_soon(record, "two")
            await anyio.wait_all_tasks_blocked()
            waited_for = list(ended)
            fcntl.flock(held, fcntl.LOCK_UN)
    os.close(held)

    assert (waited_for, sorted(ended), log.problem) == ([], ["one", "two"], "")
    assert [line["call_id"] for line in lines_of(path)[2:]] in (["one", "two"], ["two", "one"])
    assert verify(path).bad is None
