"""Reads the record for people (`call_record`), while others write it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote

from goat_mcp.calls.audit.records import CallFilter, plain_name
from goat_mcp.core.errors import ErrorCode

_WANTED = (
    "call_id, at_s, ended_at_s, pid, session, principal, client, server, tool, decision, rule, decided_by, arguments, "
    "args_sha256, args_chars, error_code, duration_ms, result_chars"
)


_IDS_AT_ONCE = 500
MAX_ROWS_SEARCHED = 5_000
"""How many calls one page of a search looks at: a search that finds little says how far it came, and goes on from
there. So no page reads more, however long the record is."""
MAX_COUNTED = 1000
"""Of the calls that a rule decided, no more are counted."""


class UnreadableRecord(Exception):
    """The file is no record of ours."""


def recorded_calls(path: Path, count: int, wanted: CallFilter) -> list[dict[str, Any]]:
    """The last `count` calls that fit, oldest first, as `records.last_calls` has them, with `client`, `server`,
    `arguments` and `result_chars`. None without a file. Raises `UnreadableRecord`.
    """
    found: list[dict[str, Any]] = []
    for row in _newest_first(path, wanted):
        if wanted.fits(dict(row)):
            found.append(_call(dict(row)))
            if len(found) >= count:
                break
    return found[::-1]


@dataclass(frozen=True)
class CallEnd:
    """How a call ended; `error_code` is None if it did not fail."""

    error_code: str | None
    duration_ms: float | None


def ends_of(path: Path, call_ids: Sequence[str]) -> dict[str, CallEnd]:
    """By call, of those whose end is recorded. Raises `UnreadableRecord`."""
    found: dict[str, CallEnd] = {}
    for start in range(0, len(call_ids), _IDS_AT_ONCE):
        some = call_ids[start : start + _IDS_AT_ONCE]
        marks = ", ".join("?" * len(some))
        for row in _rows(
            path,
            f"SELECT call_id, error_code, duration_ms FROM calls WHERE ended_at_s IS NOT NULL AND call_id IN ({marks})",
            *some,
        ):
            found[str(row["call_id"])] = CallEnd(row["error_code"], row["duration_ms"])
    return found


@dataclass(frozen=True, kw_only=True)
class CallSearch(CallFilter):
    """A `CallFilter` for people. `text` is in the tool, the rule, the error code or the arguments, or begins the id;
    `only_failed`: ended with an error code."""

    text: str = ""
    only_failed: bool = False

    def conditions(self) -> tuple[list[str], list[Any]]:
        """Of a query over rows of `calls`; `since` and `call_id` are not among them."""
        found: list[tuple[str, Sequence[Any]]] = []
        if self.tool:
            found.append(("(tool = ? OR substr(tool, ?) = ?)", (self.tool, -len(self.tool) - 2, f"__{self.tool}")))
        if self.server:
            found.append(("server = ?", (self.server,)))
        if self.client:
            plain = "replace(replace(lower(client), ' ', '-'), '_', '-')"
            found.append((f"instr({plain}, ?) > 0", (plain_name(self.client),)))
        if self.only_denied:
            found.append(("decision = 'deny'", ()))
        if self.only_failed:
            found.append(("coalesce(error_code, '') != ''", ()))
        if self.text:
            text = self.text.lower()
            # The arguments are JSON: there a quotation mark, and what is not ASCII, is an escape.
            written = json.dumps(self.text)[1:-1].lower()
            found.append(
                (
                    "(instr(lower(tool), ?) OR instr(lower(rule), ?) OR instr(lower(coalesce(arguments, '')), ?) "
                    "OR instr(lower(coalesce(error_code, '')), ?) OR substr(call_id, 1, ?) = ?)",
                    (text, text, written, text, len(text), text),
                )
            )
        return [condition for condition, _ in found], [value for _, values in found for value in values]


class InvalidCursor(ValueError):
    """The text is not where a page of ours ended."""


@dataclass(frozen=True)
class CallPage:
    """Newest first. `next` is where the following page begins, empty if there is none; `searched_to_s` is set if the
    search stopped there and not because the page is full."""

    calls: list[dict[str, Any]]
    next: str = ""
    searched_to_s: float | None = None


def page_of_calls(path: Path, wanted: CallSearch, *, before: str = "", count: int = 50) -> CallPage:
    """The newest calls that fit, or those before where another page ended. What is recorded meanwhile is on the first
    page: no call is left out or comes twice. Raises `InvalidCursor`, `UnreadableRecord`.
    """
    where, values = ["at_s >= ?"], [wanted.since.timestamp() if wanted.since is not None else 0.0]
    if before:
        where.append("(at_s, rowid) < (?, ?)")
        values += _cursor(before)
    newest = f"FROM calls WHERE {' AND '.join(where)} ORDER BY at_s DESC, rowid DESC LIMIT"
    conditions, more = wanted.conditions()
    fits = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    looked_at = f"SELECT rowid AS number, {_WANTED} {newest} {MAX_ROWS_SEARCHED}"
    rows = list(_rows(path, f"SELECT * FROM ({looked_at}){fits} LIMIT {count + 1}", *values, *more))
    calls = [_shown_call(row) for row in rows[:count]]
    if len(rows) > count:
        return CallPage(calls, f"{rows[count - 1]['at_s']!r}~{rows[count - 1]['number']}")
    last = list(_rows(path, f"SELECT rowid AS number, at_s {newest} 2 OFFSET {MAX_ROWS_SEARCHED - 1}", *values))
    if len(last) < 2:
        return CallPage(calls)
    return CallPage(calls, f"{last[0]['at_s']!r}~{last[0]['number']}", last[0]["at_s"])


def one_call(path: Path, call_id: str) -> dict[str, Any] | None:
    """Raises `UnreadableRecord`."""
    rows = _rows(path, f"SELECT rowid AS number, {_WANTED} FROM calls WHERE call_id = ?", call_id)
    return next((_shown_call(row) for row in rows), None)


def called_most(path: Path, count: int, before_s: float) -> list[str]:
    """The canonical names of the tools of upstreams that were used most in the newest `MAX_ROWS_SEARCHED` calls before
    a time, and of those used alike the last used first. Refused calls do not count. Raises `UnreadableRecord`."""
    newest = (
        f"SELECT tool, server, decision, at_s FROM calls WHERE at_s < ? ORDER BY at_s DESC LIMIT {MAX_ROWS_SEARCHED}"
    )
    of_upstreams = f"SELECT tool, at_s FROM ({newest}) WHERE server != '' AND decision != 'deny'"
    used = f"SELECT tool FROM ({of_upstreams}) GROUP BY tool ORDER BY count(*) DESC, max(at_s) DESC LIMIT ?"
    return [str(row["tool"]) for row in _rows(path, used, before_s, count)]


class RuleUse(NamedTuple):
    """`calls` that a rule decided, `MAX_COUNTED` at most, and when the last one was."""

    calls: int
    last_s: float


def decided_by_rules(path: Path, since_s: float) -> dict[str, RuleUse]:
    """By what decided: `rule Bash(ls)`, or `rule Bash(ls), allowed once by the user`. A refusal is recorded with its
    code before that, which is left out here. Reads the index alone. Raises `UnreadableRecord`."""
    begins = [(f"{code}rule ", f"{code}rule!") for code in ("", *(f"{code}: " for code in ErrorCode))]
    query = f"""
        WITH RECURSIVE begins (low, high) AS (VALUES {", ".join(["(?, ?)"] * len(begins))}),
        found (rule, high) AS (
            SELECT (SELECT min(rule) FROM calls WHERE rule >= low AND rule < high), high FROM begins
            UNION ALL
            SELECT (SELECT min(rule) FROM calls WHERE rule > found.rule AND rule < high), high
            FROM found WHERE found.rule IS NOT NULL LIMIT ?)
        SELECT rule,
            (SELECT count(*) FROM (
                SELECT 1 FROM calls WHERE calls.rule = found.rule AND at_s >= ? LIMIT ?)) AS calls,
            (SELECT max(at_s) FROM calls WHERE calls.rule = found.rule AND at_s >= ?) AS last_s
        FROM found WHERE rule IS NOT NULL"""
    limits = (MAX_COUNTED, since_s, MAX_COUNTED, since_s)
    uses: dict[str, RuleUse] = {}
    for row in _rows(path, query, *(text for pair in begins for text in pair), *limits):
        text = str(row["rule"])
        rule = text if text.startswith("rule ") else text.partition(": ")[2]
        if row["calls"]:
            before = uses.get(rule, RuleUse(0, 0.0))
            uses[rule] = RuleUse(before.calls + row["calls"], max(before.last_s, row["last_s"]))
    return uses


def _cursor(text: str) -> list[float]:
    at_s, _, number = text.partition("~")
    try:
        return [float(at_s), int(number)]
    except ValueError:
        raise InvalidCursor(text) from None


def _shown_call(row: sqlite3.Row) -> dict[str, Any]:
    """As `recorded_calls` has one, with the times in seconds, too."""
    found = dict(row)
    del found["number"]
    return {**_call(found), "at_s": row["at_s"], "ended_at_s": row["ended_at_s"]}


def names_in(path: Path, newest: int = -1) -> dict[str, list[str]]:
    """The tools, servers and clients that have calls in the record, or among its newest ones."""
    some = "SELECT tool, server, client FROM calls ORDER BY at_s DESC LIMIT ?"
    rows = list(_rows(path, f"SELECT DISTINCT tool, server, client FROM ({some})", newest))
    return {name: sorted({str(row[name]) for row in rows if row[name]}) for name in ("tool", "server", "client")}


def _newest_first(path: Path, wanted: CallFilter) -> Iterator[sqlite3.Row]:
    """Those that may fit: the file finds by itself what is one word in a column."""
    conditions: list[str] = ["at_s >= ?"]
    values: list[Any] = [wanted.since.timestamp() if wanted.since is not None else 0.0]
    exact = {"server": wanted.server, "call_id": wanted.call_id, "decision": "deny" if wanted.only_denied else ""}
    for column, value in exact.items():
        if value:
            conditions.append(f"{column} = ?")
            values.append(value)
    return _rows(
        path, f"SELECT {_WANTED} FROM calls WHERE {' AND '.join(conditions)} ORDER BY at_s DESC, rowid DESC", *values
    )


def _call(found: Mapping[str, Any]) -> dict[str, Any]:
    call = dict(found)
    call["ts"] = _iso(call.pop("at_s"))
    if by := call.pop("decided_by"):
        call["by"] = by
    if (arguments := call.pop("arguments")) is not None:
        call["arguments"] = _arguments(arguments, found)
    ended_at_s = call.pop("ended_at_s")
    if ended_at_s is None:
        for name in ("error_code", "duration_ms", "result_chars"):
            del call[name]
    else:
        call["ended"] = _iso(ended_at_s)
    return call


def _arguments(text: str, row: Mapping[str, Any]) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UnreadableRecord(f"the arguments of call {row['call_id']} are no JSON object")
    return cast("dict[str, Any]", found)


def _rows(path: Path, query: str, *values: Any) -> Iterator[sqlite3.Row]:
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=5.0)) as connection:
            connection.row_factory = sqlite3.Row
            yield from connection.execute(query, values)
    except (sqlite3.Error, ValueError) as problem:
        raise UnreadableRecord(str(problem)) from problem


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
