"""One table of SQLite that several servers share: each has a copy in memory, and Redis has the rows.

What a store does with its table is SQL, and is written once: here it runs over the copy, and what it has changed is
sent to Redis as one step, which succeeds only if no other server has changed the table since the copy was made. If one
has, the copy is brought up to date and the work runs again. So a record is decided once, whoever decides at the same
time. For tables with few changes, such as what waits for people (design/0032).
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.redis.connection import RUN, RedisConnection
from goat_mcp.state.redis.encrypted_text import EncryptedText

if TYPE_CHECKING:
    from sqlite3 import Connection

T = TypeVar("T")
WAIT_S = 5.0
ATTEMPTS = 50
PAUSE_S = 0.01
MAX_BEHIND = 10_000
"""A copy that has missed more changes than this is made anew. So removed rows need not be remembered for ever."""
_CHANGES = f"""{RUN}
local version = tonumber(redis.call('GET', KEYS[1]) or 0)
local text = run .. ':' .. string.format('%.0f', version)
if text == ARGV[1] then return {{text}} end
local of, known = string.match(ARGV[1], '(%w+):(%d+)')
known = tonumber(known or 0)
if of ~= run or known == 0 or known > version or version - known > tonumber(ARGV[2]) then
  return {{text, 'all', redis.call('HGETALL', KEYS[2])}}
end
local names = redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. string.format('%.0f', known), '+inf')
local found = {{}}
for _, name in ipairs(names) do
  table.insert(found, name)
  table.insert(found, redis.call('HGET', KEYS[2], name) or '')
end
return {{text, 'some', found}}
"""
_COMMIT = f"""{RUN}
local version = tonumber(redis.call('GET', KEYS[1]) or 0)
if run .. ':' .. string.format('%.0f', version) ~= ARGV[1] then return '' end
version = version + 1
if version == 1 then
  local now = redis.call('TIME')
  version = tonumber(now[1]) * 1000000 + tonumber(now[2])
end
local text = string.format('%.0f', version)
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[2], ARGV[i])
  else
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
  redis.call('ZADD', KEYS[3], text, ARGV[i])
end
redis.call('SET', KEYS[1], text)
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', version - tonumber(ARGV[2]), 'LIMIT', 0, 100)) do
  if redis.call('HEXISTS', KEYS[2], name) == 0 then redis.call('ZREM', KEYS[3], name) end
end
return run .. ':' .. text
"""
# The first version is the time: a Redis that has lost everything does not count to a version that a copy knows.


class SharedTable:
    """In place of a `Database` with one table. Blocking: on an event loop, in a thread.

    If Redis does not answer, nothing is read and nothing changed: `ToolError(IO)`.
    """

    exists = True

    def __init__(self, redis: RedisConnection, name: str, schema: Sequence[str], encrypted: EncryptedText) -> None:
        """`name` is that of the table, which `schema` makes and which has a primary key."""
        self._redis = redis
        self._name = name
        self._schema = schema
        self._encrypted = encrypted
        self._lock = threading.Lock()
        self._copy: Connection | None = None
        self._columns: list[str] = []
        self._key_columns: list[str] = []
        self._version = ""
        self._rows: dict[str, dict[str, Any]] = {}
        """As Redis has them, with columns that only a newer version knows."""

    def read_here(self, work: Callable[[Connection], T]) -> T:
        """Run `work` over the rows as they are now, in the thread of the caller."""
        with self._locked(WAIT_S) as copy:
            self._refresh(copy)
            return work(copy)

    def write_here(self, work: Callable[[Connection], T], *, wait_s: float = WAIT_S) -> T:
        """Run `work` as one change, all or nothing. It runs again if another server was faster."""
        with self._locked(wait_s) as copy:
            until_s = time.monotonic() + wait_s
            for attempt in range(ATTEMPTS):
                self._refresh(copy)
                copy.execute("BEGIN")
                try:
                    result = work(copy)
                    is_ours = self._commit(copy)
                except BaseException:
                    copy.execute("ROLLBACK")
                    raise
                if is_ours:
                    copy.execute("COMMIT")
                    return result
                copy.execute("ROLLBACK")
                if time.monotonic() > until_s:
                    break
                time.sleep(random.random() * PAUSE_S * (attempt + 1))  # so that two do not meet again
        raise ToolError(ErrorCode.BUSY, f"other servers change {self._name} all the time", "Try again.")

    def mark(self) -> object:
        """Another one if any server has changed the table."""
        return self._redis.ask_here(lambda client: client.get(self._redis.key("table", self._name, "version")))

    def close(self) -> None:
        with self._lock:
            if self._copy is not None:
                self._copy.close()
            self._copy, self._version = None, ""

    @contextmanager
    def _locked(self, wait_s: float) -> Generator[Connection]:
        if not self._lock.acquire(timeout=wait_s):
            raise ToolError(ErrorCode.BUSY, f"{self._name} is in use in this process", "Try again.")
        try:
            yield self._copy or self._open()
        finally:
            self._lock.release()

    def _open(self) -> Connection:
        import sqlite3

        copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=16)
        for statement in self._schema:
            copy.execute(statement)
        described = copy.execute(f"PRAGMA table_info({self._name})").fetchall()
        self._columns = [column[1] for column in described]
        keys = [column[1] for column in sorted(described, key=lambda column: column[5]) if column[5]]
        self._key_columns = keys
        copy.execute("CREATE TEMP TABLE touched (name TEXT PRIMARY KEY)")
        for event, row in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
            name = f"json_array({', '.join(f'{row}.{key}' for key in keys)})"
            copy.execute(
                f"CREATE TEMP TRIGGER on_{event} AFTER {event} ON main.{self._name} "
                f"BEGIN INSERT OR IGNORE INTO touched VALUES ({name}); END"
            )
        self._copy = copy
        return copy

    def _refresh(self, copy: Connection) -> None:
        changes = self._redis.run_script_here(_CHANGES, self._keys(), [self._version, MAX_BEHIND])
        if len(changes) == 1:
            return
        version, what, flat = changes
        rows = {name: self._opened(name, row) for name, row in zip(flat[::2], flat[1::2], strict=True)}
        copy.execute("BEGIN")
        try:
            self._take_over(copy, rows, all_of_them=what == "all")
        except BaseException:
            copy.execute("ROLLBACK")
            raise
        copy.execute("COMMIT")
        self._note(rows, all_of_them=what == "all")
        self._version = version

    def _take_over(self, copy: Connection, rows: dict[str, dict[str, Any]], *, all_of_them: bool) -> None:
        import sqlite3

        if all_of_them:
            copy.execute(f"DELETE FROM {self._name}")
        where = " AND ".join(f"{key} = ?" for key in self._key_columns)
        for name, row in rows.items():
            copy.execute(f"DELETE FROM {self._name} WHERE {where}", json.loads(name))
            known = {column: value for column, value in row.items() if column in self._columns}
            if not known:
                continue
            names, marks = ", ".join(known), ", ".join("?" * len(known))
            try:
                copy.execute(f"INSERT INTO {self._name} ({names}) VALUES ({marks})", [*known.values()])
            except sqlite3.Error as problem:
                raise ToolError(
                    ErrorCode.IO,
                    f"a row of {self._name} was written by another version of goat-mcp: {problem}",
                    "Have all servers of this state run the same version.",
                ) from None
        copy.execute("DELETE FROM touched")

    def _note(self, rows: dict[str, dict[str, Any]], *, all_of_them: bool = False) -> None:
        if all_of_them:
            self._rows.clear()
        for name, row in rows.items():
            if row:
                self._rows[name] = row
            else:
                self._rows.pop(name, None)

    def _opened(self, name: str, sealed: str) -> dict[str, Any]:
        """Empty for a row that is gone. Raises `ToolError(IO)` for what no server with our key has written."""
        if not sealed:
            return {}
        text = self._encrypted.opened(f"{self._name}/{name}", sealed)
        if text is None:
            raise ToolError(
                ErrorCode.IO,
                f"a row of {self._name} in the shared state was not written with state.key or state.previous_key",
                "Give all servers the same state.key; if they have it, somebody else has written there.",
            )
        return json.loads(text)

    def _commit(self, copy: Connection) -> bool:
        """Send what was changed. False if another server has changed the table meanwhile."""
        names = [name for (name,) in copy.execute("SELECT name FROM touched").fetchall()]
        if not names:
            return True
        where = " AND ".join(f"{key} = ?" for key in self._key_columns)
        select = f"SELECT {', '.join(self._columns)} FROM {self._name} WHERE {where}"
        sent: list[str] = []
        rows: dict[str, dict[str, Any]] = {}
        for name in names:
            row = copy.execute(select, json.loads(name)).fetchone()
            ours = {} if row is None else dict(zip(self._columns, row, strict=True))
            rows[name] = {**self._rows.get(name, {}), **ours} if ours else {}
            sent += [name, self._encrypted.sealed(f"{self._name}/{name}", json.dumps(rows[name])) if ours else ""]
        version = self._redis.run_script_here(_COMMIT, self._keys(), [self._version, MAX_BEHIND, *sent])
        if not version:
            return False
        copy.execute("DELETE FROM touched")
        self._note(rows)
        self._version = version
        return True

    def _keys(self) -> list[str]:
        return [f"table:{self._name}:{part}" for part in ("version", "rows", "changed")]
