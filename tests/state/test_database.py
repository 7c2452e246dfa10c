"""The state database: private, shared with other processes, and never in the way when its file is damaged."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state import database as database_module
from goat_mcp.state.database import SCHEMA_VERSION, Database
from goat_mcp.state.directory import StateDirectory

pytestmark = pytest.mark.anyio


@dataclass
class Log:
    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list[tuple[str, dict[str, Any]]])

    def __call__(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")


def put(owner: str, items: str = "[]") -> Callable[[sqlite3.Connection], None]:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT OR REPLACE INTO todos VALUES (?, ?, 0)", (owner, items))

    return work


def owners(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT owner FROM todos ORDER BY owner")]


def aside(state: StateDirectory) -> list[Path]:
    return sorted(path for path in state.path.glob("state.db.corrupt-*") if not path.name.endswith(("-wal", "-shm")))


def test_nothing_is_on_disk_and_sqlite_is_not_loaded_before_the_first_use(state: StateDirectory) -> None:
    code = (
        "import sys; from goat_mcp.gateway.gateway import Gateway; from goat_mcp.settings.settings import Settings;"
        "from goat_mcp.state.directory import StateDirectory; from goat_mcp.calls.permissions.mode import Approval;"
        "from pathlib import Path;"
        f"Gateway(Settings(), approval=Approval.HOST, state=StateDirectory(Path({str(state.path)!r})));"
        "print('sqlite3' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=Path.cwd())

    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr
    assert not (state.path / "state.db").exists()


@pytest.mark.posix_only("file modes")
async def test_its_files_are_the_users_alone(state: StateDirectory) -> None:
    state.folder()
    (state.path / "state.db").touch(mode=0o644)
    database = Database(state, Log())

    await database.write(put("a"))

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in state.path.glob("state.db*")}
    assert modes == dict.fromkeys(("state.db", "state.db-wal", "state.db-shm"), 0o600)


async def test_work_is_done_in_another_thread(state: StateDirectory) -> None:
    database = Database(state, Log())

    thread = await database.read(lambda connection: threading.get_ident())

    assert thread != threading.get_ident()


async def test_a_change_is_made_as_a_whole_or_not_at_all(state: StateDirectory) -> None:
    database = Database(state, Log())

    def half(connection: sqlite3.Connection) -> None:
        put("half")(connection)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await database.write(half)
    await database.write(put("whole"))

    assert await database.read(owners) == ["whole"]


async def test_a_closed_database_opens_again(state: StateDirectory) -> None:
    database = Database(state, Log())
    await database.write(put("a"))

    database.close()

    assert await database.read(owners) == ["a"]


async def test_several_processes_open_and_change_a_new_one_at_the_same_time(state: StateDirectory) -> None:
    code = (
        "import sys, anyio; from pathlib import Path;"
        "from goat_mcp.state.database import Database; from goat_mcp.state.directory import StateDirectory\n"
        f"database = Database(StateDirectory(Path({str(state.path)!r})), lambda *a, **k: print(a, k))\n"
        "async def main():\n"
        "    sys.stdin.read()\n"
        "    for number in range(20):\n"
        "        await database.write(lambda c: c.execute("
        "'INSERT INTO todos VALUES (?, ?, 0)', (f'{sys.argv[1]}-{number}', '[]')))\n"
        "anyio.run(main)"
    )

    def together() -> list[str]:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", code, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for name in "abc"
        ]
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()  # they all wait for this
            process.stdin = None
        return [process.communicate(timeout=60)[0] for process in processes]

    said = await anyio.to_thread.run_sync(together)

    assert said == ["", "", ""]
    assert len(await Database(state, Log()).read(owners)) == 60


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, None], ids=["rubbish", "torn"])
async def test_a_damaged_file_is_set_aside_with_a_line_in_the_log(state: StateDirectory, content: bytes | None) -> None:
    path = state.folder() / "state.db"
    if content is None:
        first = Database(state, Log())
        await first.write(put("a", "x" * 200_000))
        first.close()
        content = path.read_bytes()[:5000] + b"\xff" * 20_000
    path.write_bytes(content)
    log = Log()
    database = Database(state, log)

    await database.write(put("b"))

    assert await database.read(owners) == ["b"]
    (kept,) = aside(state)
    assert kept.read_bytes() == content
    assert [event for event, _ in log.lines] == ["damaged state database set aside"]
    assert log.lines[0][1]["path"] == str(kept)


@pytest.mark.posix_only("Windows lets nobody rename or remove a database that a process has open")
async def test_a_file_damaged_while_it_is_open_is_set_aside_and_every_process_uses_the_new_one(
    state: StateDirectory,
) -> None:
    log = Log()
    one, other = Database(state, log), Database(state, log)
    await one.write(put("a", "x" * 200_000))
    await other.read(owners)
    one.close()
    moved = sqlite3.connect(state.path / "state.db")
    moved.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # from the log into the file
    moved.close()
    with (state.path / "state.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 300_000)

    await one.write(put("b"))
    seen_by_other = await other.read(owners)

    assert seen_by_other == ["b"]
    assert len(aside(state)) == 1 and len(log.lines) == 1


@pytest.mark.posix_only("Windows lets nobody rename or remove a database that a process has open")
async def test_where_another_process_was_faster_its_new_file_is_left_alone(state: StateDirectory) -> None:
    path = state.path / "state.db"
    database, faster = Database(state, Log()), Database(state, Log())
    await database.write(put("a"))

    def damaged_once(connection: sqlite3.Connection) -> list[str]:
        if not (state.path / "moved").exists():
            for suffix in ("-wal", "-shm", ""):
                Path(f"{path}{suffix}").replace(state.path / f"moved{suffix}")
            anyio.from_thread.run(faster.write, put("b"))
            raise damage
        return owners(connection)

    damage = sqlite3.DatabaseError("database disk image is malformed")
    damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT

    assert await database.read(damaged_once) == ["b"]
    assert aside(state) == []


async def test_opening_waits_for_who_reads_the_file_at_that_moment(state: StateDirectory) -> None:
    state.folder()
    reader = sqlite3.connect(state.path / "state.db", isolation_level=None)
    reader.execute("CREATE TABLE other (x)")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM other").fetchall()  # the way of writing cannot be changed meanwhile
    results: list[list[str]] = []

    async def read() -> None:
        results.append(await Database(state, Log()).read(owners))

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await anyio.sleep(0.3)
        reader.execute("COMMIT")

    reader.close()
    assert results == [[]]


async def test_opening_is_tried_again_where_sqlite_refuses_one_of_two_that_open_a_new_file(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = database_module._prepare  # pyright: ignore[reportPrivateUsage]  # it is refused once
    refusals = [sqlite3.OperationalError("database is locked")]
    refusals[0].sqlite_errorcode = sqlite3.SQLITE_BUSY

    def refused_once(connection: sqlite3.Connection, path: Path, schema: Sequence[str]) -> None:
        if refusals:
            raise refusals.pop()
        prepare(connection, path, schema)

    monkeypatch.setattr(database_module, "_prepare", refused_once)

    await Database(state, Log()).write(put("a"))

    assert await Database(state, Log()).read(owners) == ["a"]


@pytest.mark.posix_only("Windows lets nobody rename or remove a database that a process has open")
async def test_a_file_that_was_deleted_under_us_is_made_anew(state: StateDirectory) -> None:
    database = Database(state, Log())
    await database.write(put("a"))

    for path in state.path.glob("state.db*"):
        path.unlink()
    await database.write(put("b"))

    assert await database.read(owners) == ["b"]
    assert (state.path / "state.db").exists()


async def test_a_database_of_a_newer_version_is_left_as_it_is(state: StateDirectory) -> None:
    state.folder()
    path = state.path / "state.db"
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    newer.close()
    before = path.read_bytes()

    with pytest.raises(ToolError, match="newer goat-mcp") as refused:
        await Database(state, Log()).read(owners)

    assert refused.value.code is ErrorCode.IO
    assert aside(state) == []
    assert path.read_bytes()[100:] == before[100:]


async def test_a_file_that_cannot_be_used_is_an_error_that_names_it(state: StateDirectory) -> None:
    (state.folder() / "state.db").mkdir()

    with pytest.raises(ToolError) as refused:
        await Database(state, Log()).read(owners)

    assert refused.value.code is ErrorCode.IO
    assert str(state.path / "state.db") in refused.value.message


async def test_a_link_in_its_place_is_not_followed(state: StateDirectory, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    (state.folder() / "state.db").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ToolError, match="symbolic link"):
        await Database(state, Log()).write(put("a"))

    assert (tmp_path / "elsewhere").read_bytes() == b""
