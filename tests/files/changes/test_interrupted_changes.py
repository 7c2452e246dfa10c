"""R-FILE-7 with the journal in place: a writer killed at any moment leaves a whole file, and a journal that fits it."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from goat_mcp.files.changes.change import UNDO, Author
from goat_mcp.files.changes.journal import Journal
from goat_mcp.files.changes.undo import Undo, UndoOutcome, undone_ids
from goat_mcp.files.workspace import Workspace
from goat_mcp.state.directory import StateDirectory

pytestmark = pytest.mark.anyio

SIZE_BYTES = 50 * 1024 * 1024
KILLS = 6
START_LIMIT_S = 60.0

WRITER = """
import hashlib, sys
from pathlib import Path
from goat_mcp.files.changes.change import Author
from goat_mcp.files.changes.journal import Journal
from goat_mcp.state.directory import StateDirectory
from goat_mcp.files.workspace import Workspace

top, locks, state, size = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
workspace, journal = Workspace(top, lock_folder=locks), Journal(StateDirectory(state))
path = workspace.resolve("@file")
with workspace.open_file(path) as file:
    version = file.version(file.read())
(top.parent / "started").touch()
for turn in range(1000):
    data = hashlib.sha256(str((turn, version.sha256)).encode()).digest() * (size // 32)
    author = Author("Write", str(turn), "s", "p")
    written = journal.write(workspace, path, data, expect=version, author=author).written
    version = written.version
"""


@pytest.mark.chaos
@pytest.mark.parametrize("size", [SIZE_BYTES, 64 * 1024], ids=["linked", "copied"])
async def test_a_killed_writer_leaves_a_whole_file_and_a_journal_that_brings_back_the_first_one(
    tmp_path: Path, size: int
) -> None:
    top, locks, state = tmp_path / "ws", tmp_path / "locks", tmp_path / "state"
    top.mkdir()
    file = top / "file"
    original = b"A" * size
    file.write_bytes(original)
    journal = Journal(StateDirectory(state))

    for turn in range(KILLS):
        _kill_while_it_writes(top, locks, state, size, after_s=turn * 0.05)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        newest = next(iter(journal.records.newest_first()), None)

        assert file.stat().st_size == size
        if newest is not None:
            assert newest.before is not None and newest.after is not None
            assert digest in (newest.before.sha256, newest.after.sha256)
            assert hashlib.sha256(journal.blobs.read(newest.before.sha256)).hexdigest() == newest.before.sha256

    workspace = Workspace(top, lock_folder=locks)
    undo = Undo(journal, workspace, Author(UNDO, "undo", "s", "p"))
    changes = undo.newest_first()
    attempts = await undo.run(changes)

    assert {attempt.outcome for attempt in attempts} <= {UndoOutcome.UNDONE, UndoOutcome.NOTHING_TO_DO}
    assert file.read_bytes() == original
    assert file.stat().st_nlink == 1
    assert [path.name for path in top.iterdir()] == ["file"]
    assert undone_ids(journal.records.newest_first()) == {
        attempt.change.id for attempt in attempts if attempt.outcome is UndoOutcome.UNDONE
    }


def _kill_while_it_writes(top: Path, locks: Path, state: Path, size: int, *, after_s: float) -> None:
    started = top.parent / "started"
    started.unlink(missing_ok=True)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(top), str(locks), str(state), str(size)])
    try:
        limit_s = time.monotonic() + START_LIMIT_S
        while not started.exists():
            assert writer.poll() is None and time.monotonic() < limit_s, "the writer did not start"
            time.sleep(0.001)
        # from the first byte of the first write to somewhere in a later one: each turn a little later
        time.sleep(after_s)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait(30)
