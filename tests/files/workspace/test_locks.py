"""One writer per file, in this process and among processes, and the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import Workspace
from goat_mcp.files.workspace import locks as locks_module
from goat_mcp.files.workspace.locks import FileLocks
from tests.files.workspace.conftest import names_in

pytestmark = pytest.mark.anyio

LIMIT_S = 60

COUNTER = """
import asyncio, sys
from pathlib import Path
from goat_mcp.files.workspace import Workspace

async def main() -> None:
    top, locks, times = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    workspace = Workspace(top, lock_folder=locks)
    path = workspace.resolve("@counter")
    for _ in range(times):
        async with workspace.lock(workspace.real_path(path)):
            with workspace.open_file(path) as file:
                data = file.read()
                seen = file.version(data)
            workspace.write_file(path, str(int(data) + 1).encode(), expect=seen)

asyncio.run(main())
"""


async def increment(workspace: Workspace) -> None:
    path = workspace.resolve("@counter")
    async with workspace.lock(workspace.real_path(path)):
        with workspace.open_file(path) as file:
            data = file.read()
            seen = file.version(data)
        await asyncio.sleep(0)  # let the others in, if the lock would
        workspace.write_file(path, str(int(data) + 1).encode(), expect=seen)


async def test_fifty_increments_at_once_lose_none(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    workspace = Workspace(tmp_path, lock_folder=tmp_path / "locks")

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(increment(workspace))

    assert (tmp_path / "counter").read_text() == "50"


async def test_increments_of_several_processes_lose_none(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "counter").write_text("0")
    arguments = [sys.executable, "-c", COUNTER, str(tmp_path / "ws"), str(tmp_path / "locks"), "30"]

    processes = [subprocess.Popen(arguments, stderr=subprocess.PIPE) for _ in range(3)]  # noqa: ASYNC220 - starts at once
    errors = [(await asyncio.to_thread(process.communicate, None, LIMIT_S))[1] for process in processes]

    assert errors == [b"", b"", b""]
    assert (tmp_path / "ws" / "counter").read_text() == "90"
    assert names_in(tmp_path / "locks") == []


async def test_the_event_loop_goes_on_while_another_process_has_the_lock(tmp_path: Path) -> None:
    ours, theirs = FileLocks(tmp_path), FileLocks(tmp_path)
    real_path = Path("/ws/file")
    order: list[str] = []

    async def wait_for_it() -> None:
        async with ours.hold(real_path):
            order.append("ours")

    async with asyncio.timeout(LIMIT_S):
        async with theirs.hold(real_path):
            waiting = asyncio.create_task(wait_for_it())
            for _ in range(20):
                await asyncio.sleep(0.005)
            order.append("theirs")
        await waiting

    assert order == ["theirs", "ours"]


async def test_files_do_not_wait_for_each_other(tmp_path: Path) -> None:
    locks = FileLocks(tmp_path)

    async with asyncio.timeout(LIMIT_S), locks.hold(Path("/ws/a")), locks.hold(Path("/ws/b")):
        assert len(names_in(tmp_path)) == 2

    assert names_in(tmp_path) == []


@pytest.mark.parametrize("who", ["this process", "another one"])
async def test_a_wait_that_takes_too_long_says_so_and_leaves_the_line(tmp_path: Path, who: str) -> None:
    holder = FileLocks(tmp_path)
    waiter = holder if who == "this process" else FileLocks(tmp_path)
    real_path = Path("/ws/file")

    async with holder.hold(real_path):
        with pytest.raises(ToolError) as refused:
            async with waiter.hold(real_path, wait_limit_s=0.05):
                pytest.fail("both have it")

    assert refused.value.code == ErrorCode.BUSY
    async with asyncio.timeout(LIMIT_S), waiter.hold(real_path):
        assert len(names_in(tmp_path)) == 1
    assert names_in(tmp_path) == []


async def test_a_cancelled_wait_leaves_the_line(tmp_path: Path) -> None:
    locks = FileLocks(tmp_path)
    real_path = Path("/ws/file")

    async def wait_for_it() -> None:
        async with locks.hold(real_path):
            pytest.fail("cancelled before its turn")

    async with locks.hold(real_path):
        waiting = asyncio.create_task(wait_for_it())
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    async with asyncio.timeout(LIMIT_S), locks.hold(real_path):
        assert len(names_in(tmp_path)) == 1
    assert names_in(tmp_path) == []


async def test_an_error_inside_releases_the_lock_and_is_seen_as_it_is(tmp_path: Path) -> None:
    locks = FileLocks(tmp_path)

    with pytest.raises(TimeoutError, match="of the body"):
        async with locks.hold(Path("/ws/file")):
            raise TimeoutError("of the body")

    async with asyncio.timeout(LIMIT_S), locks.hold(Path("/ws/file")):
        pass
    assert names_in(tmp_path) == []


async def test_a_lock_file_that_its_last_holder_removed_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = locks_module.try_lock, [0]

    def lock_after_removal(fd: int) -> bool:
        calls[0] += 1
        if calls[0] == 1:
            for path in tmp_path.iterdir():
                path.unlink()
        return real(fd)

    monkeypatch.setattr(locks_module, "try_lock", lock_after_removal)

    async with asyncio.timeout(LIMIT_S), FileLocks(tmp_path).hold(Path("/ws/file")):
        assert len(names_in(tmp_path)) == 1
    assert calls == [2]


async def test_a_line_nobody_stands_in_is_forgotten(tmp_path: Path) -> None:
    locks = FileLocks(tmp_path)

    async with asyncio.timeout(LIMIT_S):
        for number in range(3):
            async with locks.hold(Path(f"/ws/{number}")):
                pass

    assert {} in vars(locks).values()  # a long-lived server writes many files


async def test_a_lock_folder_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    locks = FileLocks(open_to_all)

    async with asyncio.timeout(LIMIT_S), locks.hold(Path("/ws/file")):
        assert names_in(open_to_all) == []
