"""One table of SQLite that several servers share: each has a copy in memory, and Redis has the rows.

What a store does with its table is SQL, and is written once: here it runs over the copy, and what it has changed is
sent to Redis as one step, which succeeds only if no other server has changed the table since the copy was made. If one
has, the copy is brought up to date and the work runs again. So a record is decided once, whoever decides at the same
time. For tables with few changes, such as what waits for people (design/0032).

A Redis that was restarted from a file, or another one after a failover, may have lost the last changes: a version
names the run of the server that has it. In the first look at another run `after_loss` is applied, once for all servers.

Rows are encrypted under their name: who can write in Redis, but has no `state.key`, can remove a row or bring back an
older one, and cannot make one, such as an approval.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.redis.connection import RedisConnection
from goat_mcp.state.redis.encrypted_text import EncryptedText

if TYPE_CHECKING:
    from sqlite3 import Connection

T = TypeVar("T")
WAIT_S = 5.0
ATTEMPTS = 50
PAUSE_S = 0.01
MARK_LASTS_S = 0.1
MAX_BEHIND = 10_000
"""A copy that has missed more changes than this is made anew. So removed rows need not be remembered for ever."""
_RUN = "local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')"
_CHANGES = (
    _RUN
    + """
local text = redis.call('GET', KEYS[1]) or ''
if string.sub(text, 1, #run + 1) ~= run .. ':' then
  return {text, text == '' and 'all' or 'lost', redis.call('HGETALL', KEYS[2])}
end
if text == ARGV[1] then return {text} end
local version = tonumber(string.sub(text, #run + 2))
local known = string.sub(ARGV[1], 1, #run + 1) == run .. ':' and tonumber(string.sub(ARGV[1], #run + 2)) or 0
if known == 0 or known > version or version - known > tonumber(ARGV[2]) then
  return {text, 'all', redis.call('HGETALL', KEYS[2])}
end
local names = redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. string.format('%.0f', known), '+inf')
local found = {}
for _, name in ipairs(names) do
  table.insert(found, name)
  table.insert(found, redis.call('HGET', KEYS[2], name) or '')
end
return {text, 'some', found}
"""
)
_COMMIT = (
    _RUN
    + """
local before = redis.call('GET', KEYS[1]) or ''
if before ~= ARGV[1] then return '' end
local is_lost = before ~= '' and string.sub(before, 1, #run + 1) ~= run .. ':'
if is_lost and ARGV[3] ~= 'settled' then return '' end
local version = tonumber(string.match(before, ':(%d+)$') or '0') + 1
if version == 1 then
  local now = redis.call('TIME')
  version = tonumber(now[1]) * 1000000 + tonumber(now[2])
end
local score = string.format('%.0f', version)
local text = run .. ':' .. score
for i = 4, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[2], ARGV[i])
  else
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
  redis.call('ZADD', KEYS[3], score, ARGV[i])
end
redis.call('SET', KEYS[1], text)
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', version - tonumber(ARGV[2]), 'LIMIT', 0, 100)) do
  if redis.call('HEXISTS', KEYS[2], name) == 0 then redis.call('ZREM', KEYS[3], name) end
end
return text
"""
)
# The first version is the time: a Redis that has lost everything does not count to a version that a copy knows.


class SharedTable:
    """In place of a `Database` with one table. Blocking: on an event loop, in a thread.

    If Redis does not answer, nothing is read and nothing changed: `ToolError(IO)`.
    """

    exists = True

    def __init__(
        self,
        redis: RedisConnection,
        name: str,
        schema: Sequence[str],
        encrypted: EncryptedText,
        after_loss: Sequence[str] = (),
    ) -> None:
        """`name` is that of the table, which `schema` makes and which has a primary key. `after_loss`: SQL for rows
        that nobody may go by if later changes of them may be lost."""
        self._redis = redis
        self._name = name
        self._schema = schema
        self._encrypted = encrypted
        self._after_loss = after_loss
        self._lock = threading.Lock()
        self._copy: Connection | None = None
        self._columns: list[str] = []
        self._key_columns: list[str] = []
        self._version = ""
        self._mark: tuple[float, object] = (0.0, None)

    def read_here(self, work: Callable[[Connection], T]) -> T:
        """Run `work` over the rows as they are now, in the thread of the caller."""
        with self._locked(WAIT_S) as copy:
            self._bring_up(copy)
            return work(copy)

    def write_here(self, work: Callable[[Connection], T], *, wait_s: float = WAIT_S) -> T:
        """Run `work` as one change, all or nothing. It runs again if another server was faster."""
        with self._locked(wait_s) as copy:
            return self._write(copy, work, time.monotonic() + wait_s)

    def mark(self) -> object:
        """Another one if any server has changed the table. All calls that wait look at the same one for a moment."""
        asked_s, mark = self._mark
        if time.monotonic() - asked_s > MARK_LASTS_S:
            asked_s = time.monotonic()
            mark = self._redis.ask_here(lambda client: client.get(self._redis.key("table", self._name, "version")))
            self._mark = asked_s, mark
        return mark

    def close(self) -> None:
        with self._lock:
            if self._copy is not None:
                self._copy.close()
            self._copy, self._version = None, ""

    def _write(self, copy: Connection, work: Callable[[Connection], T], until_s: float) -> T:
        for attempt in range(ATTEMPTS):
            self._bring_up(copy)
            if (done := self._try(copy, work)) is not None:
                return done[0]
            if time.monotonic() > until_s:
                break
            time.sleep(random.random() * PAUSE_S * (attempt + 1))  # so that two do not meet again
        raise ToolError(ErrorCode.BUSY, f"other servers change {self._name} all the time", "Try again.")

    def _bring_up(self, copy: Connection) -> None:
        """Make the copy what Redis has. After a loss somebody is the first to settle the rows, and all see that."""
        for _ in range(ATTEMPTS):
            if not self._refresh(copy) or self._try(copy, self._settle, is_new_run=True) is not None:
                return
        raise ToolError(ErrorCode.BUSY, f"other servers change {self._name} all the time", "Try again.")

    def _settle(self, copy: Connection) -> None:
        for statement in self._after_loss:
            copy.execute(statement)

    def _try(self, copy: Connection, work: Callable[[Connection], T], *, is_new_run: bool = False) -> tuple[T] | None:
        """None if another server has changed the table since the copy was made."""
        copy.execute("BEGIN")
        try:
            result = work(copy)
            is_ours = self._commit(copy, is_new_run=is_new_run)
        except BaseException:
            copy.execute("ROLLBACK")
            raise
        copy.execute("COMMIT" if is_ours else "ROLLBACK")
        return (result,) if is_ours else None

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

    def _refresh(self, copy: Connection) -> bool:
        """Returns whether changes may be lost, and nobody has settled that."""
        changes = self._redis.run_script_here(_CHANGES, self._keys(), [self._version, MAX_BEHIND])
        if len(changes) == 1:
            return False
        version, what, flat = changes
        rows = dict(zip(flat[::2], flat[1::2], strict=True))
        copy.execute("BEGIN")
        try:
            if what != "some":
                copy.execute(f"DELETE FROM {self._name}")  # our own name
            for name, row in rows.items():
                self._replace(copy, name, row)
            copy.execute("DELETE FROM touched")
        except BaseException:
            copy.execute("ROLLBACK")
            raise
        copy.execute("COMMIT")
        self._take(version)
        return what == "lost"

    def _replace(self, copy: Connection, name: str, row: str) -> None:
        """What is no row of this table, or was not made with our key, is left out: nobody goes by it."""
        import sqlite3

        where = " AND ".join(f"{key} = ?" for key in self._key_columns)
        with suppress(ValueError, TypeError, sqlite3.Error):
            copy.execute(f"DELETE FROM {self._name} WHERE {where}", json.loads(name))
            if row and (opened := self._encrypted.opened(f"{self._name}:{name}", row)) is not None:
                self._insert(copy, json.loads(opened))

    def _insert(self, copy: Connection, row: Any) -> None:
        if not isinstance(row, dict):
            raise TypeError
        known = {column: value for column, value in cast("dict[str, Any]", row).items() if column in self._columns}
        names, marks = ", ".join(known), ", ".join("?" * len(known))
        copy.execute(f"INSERT INTO {self._name} ({names}) VALUES ({marks})", [*known.values()])

    def _commit(self, copy: Connection, *, is_new_run: bool) -> bool:
        """Send what was changed. False if the table is another one meanwhile. `is_new_run`: a loss is settled by it."""
        names = [name for (name,) in copy.execute("SELECT name FROM touched").fetchall()]
        if not names and not is_new_run:
            return True
        where = " AND ".join(f"{key} = ?" for key in self._key_columns)
        select = f"SELECT {', '.join(self._columns)} FROM {self._name} WHERE {where}"
        sent: list[str] = []
        for name in names:
            row = copy.execute(select, json.loads(name)).fetchone()
            sent += [name, "" if row is None else self._sealed(name, row)]
        settled = "settled" if is_new_run else ""
        version = self._redis.run_script_here(_COMMIT, self._keys(), [self._version, MAX_BEHIND, settled, *sent])
        if not version:
            return False
        copy.execute("DELETE FROM touched")
        self._take(version)
        return True

    def _sealed(self, name: str, row: Sequence[object]) -> str:
        text = json.dumps(dict(zip(self._columns, row, strict=True)))
        return self._encrypted.sealed(f"{self._name}:{name}", text)

    def _take(self, version: str) -> None:
        self._version, self._mark = version, (0.0, None)

    def _keys(self) -> list[str]:
        return [f"table:{self._name}:{part}" for part in ("version", "rows", "changed")]
