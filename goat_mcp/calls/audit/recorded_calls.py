"""Reads the record for people (`call_record`), while others write it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from goat_mcp.calls.audit.records import CallFilter

_WANTED = (
    "call_id, at_s, ended_at_s, pid, session, principal, client, server, tool, decision, rule, decided_by, arguments, "
    "args_sha256, args_chars, error_code, duration_ms, result_chars"
)


_IDS_AT_ONCE = 500


class UnreadableRecord(Exception):
    """The file is no record of ours."""


def recorded_calls(path: Path, count: int, wanted: CallFilter) -> list[dict[str, Any]]:
    """The last `count` calls that fit, oldest first, as `records.last_calls` has them, with `client`, `server`,
    `arguments` and `result_chars`. None without a file. Raises `UnreadableRecord`.
    """
    found: list[dict[str, Any]] = []
    for row in _newest_first(path, wanted):
        if wanted.fits(dict(row)):
            found.append(_call(row))
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


def names_in(path: Path) -> dict[str, list[str]]:
    """The tools, servers and clients that have calls in the record."""
    found: dict[str, list[str]] = {}
    for column in ("tool", "server", "client"):
        rows = _rows(path, f"SELECT DISTINCT {column} FROM calls WHERE {column} != '' ORDER BY {column} LIMIT 1000")
        found[column] = [str(row[column]) for row in rows]
    return found


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


def _call(row: sqlite3.Row) -> dict[str, Any]:
    call = dict(row)
    call["ts"] = _iso(call.pop("at_s"))
    if by := call.pop("decided_by"):
        call["by"] = by
    if (arguments := call.pop("arguments")) is not None:
        call["arguments"] = _arguments(arguments, row)
    ended_at_s = call.pop("ended_at_s")
    if ended_at_s is None:
        for name in ("error_code", "duration_ms", "result_chars"):
            del call[name]
    else:
        call["ended"] = _iso(ended_at_s)
    return call


def _arguments(text: str, row: sqlite3.Row) -> dict[str, Any]:
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
