"""A small SQLite database in the state directory, opened at first use, never on the event loop.

Only the tables of `state.db` are listed here; what is in them belongs to the stores that use them."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.own_file import open_own

if TYPE_CHECKING:
    from sqlite3 import Connection

T = TypeVar("T")

FILE_NAME = "state.db"
SCHEMA_VERSION = 1
BUSY_TIMEOUT_S = 5.0
BUSY_RETRY_S = 0.02
CLOSE_TIMEOUT_S = 1.0
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS todos (owner TEXT PRIMARY KEY, items TEXT NOT NULL, changed_at_s REAL NOT NULL)",
    """CREATE TABLE IF NOT EXISTS session_settings (
        session TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, changed_at_s REAL NOT NULL,
        PRIMARY KEY (session, key))""",
    "CREATE TABLE IF NOT EXISTS used_tokens (token TEXT PRIMARY KEY, used_at_s REAL NOT NULL)",
)
_DAMAGED = frozenset({11, 26})
"""SQLITE_CORRUPT and SQLITE_NOTADB."""
_BUSY = frozenset({5, 6})
"""SQLITE_BUSY and SQLITE_LOCKED."""


class Warn(Protocol):
    """Writes a line to the process's log."""

    def __call__(self, event: str, **fields: Any) -> None: ...


class Table(Protocol):
    """Rows that several processes share, and work over them in SQL. Blocking: on an event loop, in a thread.

    Raises `ToolError(IO)` where the rows cannot be had.
    """

    @property
    def exists(self) -> bool: ...

    def read_here(self, work: Callable[[Connection], T]) -> T: ...

    def write_here(self, work: Callable[[Connection], T], *, wait_s: float = ...) -> T:
        """All or nothing; `work` may run more than once."""
        ...

    def mark(self) -> object:
        """Another one if any process has changed something."""
        ...

    def close(self) -> None: ...


def open_table(
    state: StateDirectory,
    warn: Warn,
    file_name: str,
    name: str,
    schema: Sequence[str],
    after_loss: Sequence[str] = (),
) -> Table:
    """The table `name` that `schema` makes: of this machine in a file, or of all servers that share a state.

    `after_loss`: SQL that makes harmless what an earlier state of the rows would grant. A shared state may be set back.
    """
    if state.shared is not None:
        return state.shared.table(name, schema, after_loss)
    return Database(state, warn, file_name=file_name, schema=schema)


class Database:
    """`state.db` of a state directory, or another file there, shared with the user's other goat-mcp processes.

    A damaged file is set aside under another name, with a line in the log, and a new one takes its place.
    """

    def __init__(
        self, state: StateDirectory, warn: Warn, *, file_name: str = FILE_NAME, schema: Sequence[str] = _SCHEMA
    ) -> None:
        self.path = state.path / file_name
        self._state = state
        self._warn = warn
        self._schema = schema
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._opened: tuple[int, int] | None = None

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a worker thread, over one consistent view. Raises `ToolError(IO)` where that fails."""
        return await self._in_thread("BEGIN", work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a worker thread as one change, all or nothing. Raises `ToolError(IO)` where that fails."""
        return await self._in_thread("BEGIN IMMEDIATE", work)

    def write_here(self, work: Callable[[Connection], T], *, wait_s: float = BUSY_TIMEOUT_S) -> T:
        """As `write`, in the thread of the caller, which waits; for others that write, about `wait_s`."""
        return self._run("BEGIN IMMEDIATE", work, wait_s)

    def read_here(self, work: Callable[[Connection], T]) -> T:
        """As `read`, in the thread of the caller, which waits."""
        return self._run("BEGIN", work)

    @property
    def exists(self) -> bool:
        """Without a file nothing was ever kept: whoever only looks makes none."""
        return self.path.exists()

    def mark(self) -> object:
        """Another one if any process has changed something. Costs two looks at the file system."""
        found: list[int] = []
        for path in (self.path, Path(f"{self.path}-wal")):
            try:
                stat = path.stat()
                found += [stat.st_mtime_ns, stat.st_size]
            except OSError:
                found += [0, 0]
        return tuple(found)

    def close(self) -> None:
        """Let go of the file; the next use opens it again. Work that nobody waits for any more may keep it a while."""
        if self._lock.acquire(timeout=CLOSE_TIMEOUT_S):
            try:
                self._close()
            finally:
                self._lock.release()

    async def _in_thread(self, begin: str, work: Callable[[Connection], T]) -> T:
        # Left alone when cancelled: the lock keeps whoever comes next from the connection until it is done.
        return await anyio.to_thread.run_sync(self._run, begin, work, abandon_on_cancel=True)

    def _run(self, begin: str, work: Callable[[Connection], T], wait_s: float = BUSY_TIMEOUT_S) -> T:
        import sqlite3

        # Bounded: behind a locked file each of many threads would wait for all before it.
        if not self._lock.acquire(timeout=wait_s):
            raise self._unusable("it is in use")
        try:
            try:
                return self._transact(begin, work, wait_s)
            except sqlite3.DatabaseError as problem:
                if _code(problem) not in _DAMAGED:
                    raise
                self._set_aside(str(problem))
                return self._transact(begin, work, wait_s)
        except (sqlite3.Error, OSError) as problem:
            raise self._unusable(str(problem)) from problem
        finally:
            self._lock.release()

    def _unusable(self, problem: str) -> ToolError:
        return ToolError(
            ErrorCode.IO,
            f"the state database {self.path} could not be used: {problem}",
            "Try again; if it stays so, the user has to look at that file and its folder.",
        )

    def _transact(self, begin: str, work: Callable[[Connection], T], wait_s: float) -> T:
        if self._connection is not None and self._identity() != self._opened:
            self._close()  # somebody has set the file aside or deleted it
        connection = self._connection or self._open()
        connection.execute(f"PRAGMA busy_timeout={wait_s * 1000:.0f}")
        connection.execute(begin)
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(Exception):
                connection.execute("ROLLBACK")
            raise
        return result

    def _open(self) -> Connection:
        import sqlite3

        self._state.folder()
        _make_private(self.path)
        connection = sqlite3.connect(
            self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, cached_statements=16
        )
        try:
            _prepare_patiently(connection, self.path, self._schema)
        except BaseException:
            connection.close()
            raise
        self._opened = self._identity()
        self._connection = connection
        return connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _set_aside(self, problem: str) -> None:
        damaged = self._opened if self._connection is not None else self._identity()
        self._close()
        if self._identity() != damaged:
            return  # another process was faster
        aside = self.path.with_name(f"{self.path.name}.corrupt-{int(time.time())}-{secrets.token_hex(3)}")
        # The log first: beside a new database, SQLite would take it for the new one's.
        for suffix in ("-wal", "-shm", ""):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").replace(f"{aside}{suffix}")
        self._warn("damaged state database set aside", path=str(aside), problem=problem)


def _prepare_patiently(connection: Connection, path: Path, schema: Sequence[str]) -> None:
    """Where two processes make a new file a database, SQLite refuses one of them at once instead of waiting."""
    import sqlite3

    give_up_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            return _prepare(connection, path, schema)
        except sqlite3.OperationalError as problem:
            if _code(problem) not in _BUSY or time.monotonic() > give_up_s:
                raise
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            time.sleep(BUSY_RETRY_S)


def _prepare(connection: Connection, path: Path, schema: Sequence[str]) -> None:
    if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise ToolError(
            ErrorCode.IO,
            f"the state database {path} was written by a newer goat-mcp (schema {version}, this one: {SCHEMA_VERSION})",
            "Tell the user: start that newer goat-mcp, or name another state directory with GOAT_MCP_STATE_DIR.",
        )
    connection.execute("BEGIN IMMEDIATE")
    for statement in schema:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _make_private(path: Path) -> None:
    # Never opened and closed by us where it exists: closing a file drops the locks SQLite has on it in this process.
    try:
        os.close(open_own(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        if path.is_symlink():
            raise OSError(f"{path} is a symbolic link") from None
        path.chmod(0o600)


def _code(problem: Exception) -> int:
    """SQLite's primary error code."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF


class OneTimeTokens(Protocol):
    """Tokens that are good for one use, by whatever process."""

    async def issue(self, token: str) -> None:
        """Raises `ToolError(IO)` if it could not be used later."""
        ...

    async def use(self, token: str) -> bool:
        """Whether it is good, which it never is again. Raises `ToolError(IO)` if that cannot be known."""
        ...


class DatabaseTokens:
    """Remembers each that was used for `lifetime_s`: after that it has to have expired by itself."""

    def __init__(self, database: Database, lifetime_s: float) -> None:
        self._database = database
        self._lifetime_s = lifetime_s

    async def issue(self, token: str) -> None:
        """Nothing to keep: whoever shows it has it sealed from us."""

    async def use(self, token: str) -> bool:
        def work(connection: Connection) -> bool:
            now_s = time.time()
            connection.execute("DELETE FROM used_tokens WHERE used_at_s < ?", (now_s - 2 * self._lifetime_s,))
            added = connection.execute("INSERT OR IGNORE INTO used_tokens VALUES (?, ?)", (token, now_s))
            return added.rowcount == 1

        return await self._database.write(work)
