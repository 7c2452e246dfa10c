"""The record for people: who called what with which arguments, what was decided, how it ended (R-AUDIT-2).

A SQLite file beside the chain of hashes, written in batches by a thread of its own. It is a convenience: a call never
waits for it and never fails because of it, and what it says is proved by the chain alone.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from goat_mcp.calls.audit.shown_arguments import TakenArguments
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError, cut_middle
from goat_mcp.core.names import InvalidName, split_name
from goat_mcp.core.redaction import Redactor
from goat_mcp.state.database import Database, Warn
from goat_mcp.state.directory import StateDirectory

if TYPE_CHECKING:
    from sqlite3 import Connection

FILE_NAME = "calls.db"
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS calls (
        call_id TEXT PRIMARY KEY, at_s REAL NOT NULL, ended_at_s REAL, pid INTEGER NOT NULL, session TEXT NOT NULL,
        principal TEXT NOT NULL, client TEXT NOT NULL, server TEXT NOT NULL, tool TEXT NOT NULL,
        decision TEXT NOT NULL, rule TEXT NOT NULL, decided_by TEXT NOT NULL, arguments TEXT,
        args_sha256 TEXT NOT NULL, args_chars INTEGER NOT NULL, error_code TEXT, duration_ms REAL,
        result_chars INTEGER)""",
    "CREATE INDEX IF NOT EXISTS calls_by_time ON calls (at_s)",
    "CREATE INDEX IF NOT EXISTS calls_by_rule ON calls (rule, at_s)",
)
BATCH_S = 0.2
"""How long the first entry waits for others: all of them are one change of the file."""
CLOSE_TIMEOUT_S = 2.0
MAX_WAITING = 5000
"""Entries not written yet. More are lost, and the log says how many: memory counts more."""
MAX_CALLS = 200_000
"""The file stays below some hundred megabytes, however much is called."""
DAY_S = 86_400
MAX_TEXT_CHARS = 300
"""Of a name or a rule; longer ones are cut in the middle."""
_MAX_KNOWN = 256
_ROWS = 50
"""So many make one statement, which has 999 values at most in older SQLite."""
_PAUSE_S = 0.001


@dataclass(frozen=True)
class RecordOptions:
    """`arguments`: without secrets, or only their hash and length. `days`: how long a call is kept."""

    arguments: Literal["redacted", "hash"] = "redacted"
    days: int = 30


class _Decided(NamedTuple):
    at_s: float
    tool: str
    ctx: ToolContext
    decision: str
    rule: str
    by: str
    arguments: TakenArguments | None
    hashed: Mapping[str, Any]


class _Ended(NamedTuple):
    at_s: float
    call_id: str
    error_code: str | None
    duration_ms: float
    result_chars: int | None


class CallRecord:
    """Of one process; the file is shared with the user's others. Any thread may add to it."""

    def __init__(
        self, state: StateDirectory, options: RecordOptions, *, redactor: Redactor, warn: Warn, pid: int
    ) -> None:
        self._database = Database(state, warn, file_name=FILE_NAME, schema=SCHEMA)
        self._options = options
        self._redactor = redactor
        self._warn = warn
        self._pid = pid
        self._waiting: deque[_Decided | _Ended] = deque()
        self._added = threading.Event()
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._lost = 0
        self._problem = ""
        self._known: dict[tuple[int, str], str] = {}

    def decided(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        ctx: ToolContext,
        *,
        decision: str,
        rule: str,
        by: str,
        hashed: Mapping[str, Any],
    ) -> None:
        """`hashed` is what the chain holds of the arguments: `args_sha256` and `args_chars`."""
        taken = TakenArguments(arguments) if self._options.arguments == "redacted" else None
        self._add(_Decided(time.time(), tool, ctx, decision, rule, by, taken, hashed))

    def ended(self, ctx: ToolContext, *, error_code: str | None, duration_ms: float, result_chars: int | None) -> None:
        self._add(_Ended(time.time(), ctx.call_id, error_code, duration_ms, result_chars))

    def expire(self) -> None:
        """Remove what is older than it is to be kept. Blocks: for a thread. Without a file it makes none."""
        if not self._database.path.exists():
            return
        oldest_s = time.time() - self._options.days * DAY_S

        def remove(connection: Connection) -> None:
            # So that arguments do not stay readable in pages that are free.
            connection.execute("PRAGMA secure_delete=ON")
            connection.execute("DELETE FROM calls WHERE at_s < ?", (oldest_s,))
            connection.execute(
                "DELETE FROM calls WHERE at_s < (SELECT at_s FROM calls ORDER BY at_s DESC LIMIT 1 OFFSET ?)",
                (MAX_CALLS,),
            )

        try:
            self._database.write_here(remove)
        except ToolError as problem:
            self._warn("old calls were not removed from the record", problem=problem.message)

    def close(self) -> None:
        """Write what waits, within `CLOSE_TIMEOUT_S`. The next entry begins again."""
        thread = self._thread
        if thread is None:
            return
        self._closing.set()
        self._added.set()
        thread.join(CLOSE_TIMEOUT_S)
        atexit.unregister(self.close)
        self._thread = None
        self._database.close()

    def _add(self, entry: _Decided | _Ended) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._lost += 1
            return
        self._waiting.append(entry)
        if not self._added.is_set():
            self._added.set()
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._closing.clear()
                # A daemon: a disk that hangs must not keep the process from ending.
                self._thread = threading.Thread(target=self._work, name="call record", daemon=True)
                self._thread.start()
                atexit.register(self.close)

    def _work(self) -> None:
        while not self._closing.is_set() or self._waiting:
            self._added.wait()
            self._closing.wait(BATCH_S)
            self._added.clear()
            try:
                self._write([self._waiting.popleft() for _ in range(len(self._waiting))])
            except Exception as bug:  # the record goes on without these entries
                self._warn("entries of the record for people were lost", problem=repr(bug))

    def _write(self, entries: list[_Decided | _Ended]) -> None:
        """A failure is logged once, and these entries are lost."""
        if not entries:
            return
        rows, ends = self._rows(entries)

        def write(connection: Connection) -> None:
            for start in range(0, len(rows), _ROWS):
                some = rows[start : start + _ROWS]
                connection.execute(_insert(len(some)), [value for row in some for value in row])
            connection.executemany(_END, ends)

        try:
            self._database.write_here(write)
        except ToolError as problem:
            self._lost += len(entries)
            if not self._problem:
                self._warn("the record for people is not written; the chain of hashes is", problem=problem.message)
            self._problem = problem.message
            return
        if self._problem or self._lost:
            self._warn("the record for people lacks entries", lost=self._lost, problem=self._problem or "too many")
            self._problem, self._lost = "", 0

    def _rows(self, entries: list[_Decided | _Ended]) -> tuple[list[list[Any]], list[list[Any]]]:
        """The calls that began among these entries, with their ends, and the ends of calls that began before."""
        rows: dict[str, list[Any]] = {}
        ends: list[list[Any]] = []
        for number, entry in enumerate(entries, 1):
            if isinstance(entry, _Decided):
                rows[entry.ctx.call_id] = self._row(entry)
            else:
                end = [entry.at_s, entry.error_code, entry.duration_ms, entry.result_chars]
                if (row := rows.get(entry.call_id)) is not None:
                    row[-len(end) :] = end
                else:
                    ends.append([*end, entry.call_id])
            if number % _ROWS == 0:
                # The event loop shares the interpreter: without a pause it waits 5 ms for its turn.
                self._closing.wait(_PAUSE_S)
        return list(rows.values()), ends

    def _row(self, entry: _Decided) -> list[Any]:
        ctx = entry.ctx
        return [
            ctx.call_id,
            entry.at_s,
            self._pid,
            self._short(ctx.session_key),
            self._short(ctx.principal),
            self._short(ctx.client_name),
            server_of(entry.tool),
            self._short(entry.tool),
            entry.decision,
            self._short(entry.rule),
            entry.by,
            entry.arguments.shown(self._redactor) if entry.arguments is not None else None,
            entry.hashed["args_sha256"],
            entry.hashed["args_chars"],
            *(None, None, None, None),
        ]

    def _short(self, text: str) -> str:
        # The same few names and rules stand in nearly all rows.
        key = (self._redactor.generation, text)
        if (known := self._known.get(key)) is not None:
            return known
        shown = cut_middle(self._redactor.text(text[: 4 * MAX_TEXT_CHARS]), MAX_TEXT_CHARS)
        shown = shown.encode("utf-8", "backslashreplace").decode()
        if len(text) <= MAX_TEXT_CHARS:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = shown
        return shown


_COLUMNS = (
    *("call_id", "at_s", "pid", "session", "principal", "client", "server", "tool", "decision", "rule", "decided_by"),
    *("arguments", "args_sha256", "args_chars", "ended_at_s", "error_code", "duration_ms", "result_chars"),
)
_END = "UPDATE calls SET ended_at_s = ?, error_code = ?, duration_ms = ?, result_chars = ? WHERE call_id = ?"


@cache
def _insert(rows: int) -> str:
    """One statement for all of them: between two statements the thread and the event loop change places."""
    row = f"({', '.join('?' * len(_COLUMNS))})"
    decided_again = ", ".join(f"{column} = excluded.{column}" for column in _COLUMNS[_COLUMNS.index("decision") :])
    return (
        f"INSERT INTO calls ({', '.join(_COLUMNS)}) VALUES {', '.join([row] * rows)} "
        f"ON CONFLICT (call_id) DO UPDATE SET {decided_again}"
    )


def server_of(tool: str) -> str:
    """The server that a tool belongs to, by its canonical name; empty for tools of ours."""
    try:
        return split_name(tool).server
    except InvalidName:
        return ""
