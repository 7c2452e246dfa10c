"""The server is killed while it writes a large file: what stands there is the whole old file or the whole new one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from goat_mcp.files.workspace.temp_files import is_temp_name
from tests.e2e.goat import Launch
from tests.e2e.wire import Wire
from tests.repetitions import times

pytestmark = [pytest.mark.real_processes, pytest.mark.e2e, pytest.mark.chaos]

SIZE_BYTES = 50 * 1000 * 1000
KILLS = times(2, in_full_run=100)
MORE_KILLS = 30
"""Where none of them came in time: a busy machine may be slow to kill, and find the write done."""
WAIT_S = 60.0


def left_over(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if is_temp_name(path.name)]


def test_fs_38_a_server_killed_in_a_write_leaves_a_whole_file(launch: Launch) -> None:
    """R-FILE-7. Each time the kill comes a little later: from the first bytes to the rename."""
    launch = Launch(launch.folder, launch.workspace, ("--set", "files.read_before_write=off"))
    path = launch.workspace / "f"
    path.write_bytes(b"A" * SIZE_BYTES)
    seen_unfinished = False

    for turn in range(KILLS + MORE_KILLS):
        if turn >= KILLS and seen_unfinished:
            break
        letter = "BC"[turn % 2]
        before = path.read_bytes()
        with Wire(launch.command, launch.environment, launch.workspace, launch.folder / "stderr") as wire:
            wire.handshake()
            assert not wire.call("Glob", {"pattern": "f"}).get("isError")
            assert left_over(launch.workspace) == [], "what was left is cleared up at the next start"
            wire.start(
                "tools/call", {"name": "Write", "arguments": {"file_path": str(path), "content": letter * SIZE_BYTES}}
            )
            ends_at_s = time.monotonic() + WAIT_S
            while not left_over(launch.workspace):
                assert time.monotonic() < ends_at_s, "the write never began"
                time.sleep(0.001)
            time.sleep((turn % 10) * 0.01 if turn < KILLS else 0)
            wire.process.kill()
            wire.process.wait(60)

        content = path.read_bytes()
        seen_unfinished |= bool(left_over(launch.workspace))
        assert len(left_over(launch.workspace)) <= 1
        assert content == before or content == letter.encode() * SIZE_BYTES

    assert seen_unfinished, "no kill came before the rename"
    with Wire(launch.command, launch.environment, launch.workspace, launch.folder / "stderr") as wire:
        wire.handshake()
        assert not wire.call("Glob", {"pattern": "f"}).get("isError")
        assert left_over(launch.workspace) == []
