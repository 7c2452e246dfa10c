"""Reads a record of calls: its lines in order, over all files, while others write; and the calls they describe."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, cast

from goat_mcp.calls.audit.call_record import server_of
from goat_mcp.calls.audit.chain import MAX_LINE_BYTES, rotated_files
from goat_mcp.state.file_lock import lock, unlock


@dataclass(frozen=True, slots=True)
class RecordLine:
    """`text` is without its line end; `is_whole` says whether it had one. Counted from 1 in each file."""

    file: Path
    number: int
    text: bytes
    is_whole: bool = True

    @property
    def location(self) -> str:
        return f"{self.file.name}:{self.number}"


@dataclass(frozen=True)
class RecordFiles:
    """The files as they were at one moment: number (0 for the growing one), file and bytes to read."""

    files: tuple[tuple[int, BinaryIO, int], ...]
    path: Path

    def lines(self) -> Iterator[RecordLine]:
        for _, file, size in self.files:
            number, left = 0, size
            while left > 0:
                # More than any line of ours: a changed file may hold one without an end.
                text = file.readline(min(left, 4 * MAX_LINE_BYTES))
                if not text:
                    break
                left -= len(text)
                number += 1
                yield RecordLine(Path(os.fsdecode(file.name)), number, text.removesuffix(b"\n"), text.endswith(b"\n"))


@contextmanager
def record_files(path: Path) -> Generator[RecordFiles]:
    """Open all files of the record of calls at `path`. Raises `OSError` if there is none.

    Writers wait while the files are opened, and not while they are read.
    """
    with ExitStack() as stack:
        growing: BinaryIO | None = None
        try:
            growing = stack.enter_context(path.open("rb"))
        except FileNotFoundError:
            if not rotated_files(path):
                raise
        if growing is not None:
            lock(growing.fileno(), shared=True)
        try:
            opened: list[tuple[int, BinaryIO, int]] = []
            for number, file in rotated_files(path):
                kept = stack.enter_context(file.open("rb"))
                opened.append((number, kept, os.fstat(kept.fileno()).st_size))
            if growing is not None and not any(_same(growing, kept) for _, kept, _ in opened):
                opened.append((0, growing, os.fstat(growing.fileno()).st_size))
        finally:
            if growing is not None:
                unlock(growing.fileno())
        yield RecordFiles(tuple(opened), path)


def _same(one: BinaryIO, other: BinaryIO) -> bool:
    """It was rotated just before we locked it."""
    return os.path.sameopenfile(one.fileno(), other.fileno())


EVENT_FIELDS = (
    "ts", "seq", "prev", "event", "call_id", "session", "principal", "pid", "tool", "decision", "rule", "by", "hooks",
    "args_sha256", "args_chars", "error_code", "duration_ms",
)  # fmt: skip
"""The columns of an export as CSV."""
_BLOCK_BYTES = 1024 * 1024
_ERROR_CODE = re.compile(r"\AE_[A-Z_]+: ")
"""Begins the rule of what was not allowed; the outcome has it, too."""
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


class InvalidTime(ValueError):
    """The text is neither a time nor a span of one."""


def events(path: Path, *, since: datetime | None = None) -> Iterator[dict[str, Any]]:
    """All readable lines, oldest first. Raises `OSError` if there is no record."""
    with record_files(path) as record:
        for line in record.lines():
            try:
                read: Any = json.loads(line.text)
            except (ValueError, RecursionError):
                continue
            if isinstance(read, dict):
                event = cast("dict[str, Any]", read)
                if since is None or _time_of(event) >= since:
                    yield event


@dataclass(frozen=True, kw_only=True)
class CallFilter:
    """Which calls are wanted. An empty text wants all; `tool` may be a tool's name without its server's."""

    since: datetime | None = None
    server: str = ""
    tool: str = ""
    client: str = ""
    """A part of the client's name; known by the record for people alone."""
    call_id: str = ""
    only_denied: bool = False

    def fits(self, call: Mapping[str, Any]) -> bool:
        """`call` as `last_calls` returns it."""
        tool = str(call.get("tool"))
        return (
            (not self.tool or tool == self.tool or tool.endswith(f"__{self.tool}"))
            and (not self.server or server_of(tool) == self.server)
            and (not self.call_id or call.get("call_id") == self.call_id)
            and (not self.only_denied or call.get("decision") == "deny")
            and (not self.client or plain_name(self.client) in plain_name(str(call.get("client", ""))))
        )


def plain_name(client: str) -> str:
    """`Visual Studio Code` and `visual-studio-code` are one client."""
    return client.casefold().replace(" ", "-").replace("_", "-")


def last_calls(path: Path, count: int, wanted: CallFilter) -> list[dict[str, Any]]:
    """The last `count` calls that fit, oldest first: the fields of the decision with those of the outcome.

    `ended` is when; it is missing if no outcome was recorded.
    """
    calls: dict[str, dict[str, Any]] = {}
    for event in events(path, since=wanted.since):
        id = event.get("call_id")
        if not isinstance(id, str):
            continue
        if event.get("event") == "decision" or id not in calls:
            calls.pop(id, None)
            if not wanted.fits(event):
                continue
            calls[id] = {key: value for key, value in event.items() if key not in ("event", "prev")}
            if len(calls) > max(count, 1):
                del calls[next(iter(calls))]
        if event.get("event") == "outcome":
            calls[id] |= {key: event.get(key) for key in ("error_code", "duration_ms")} | {"ended": event.get("ts")}
    return list(calls.values())


def lines_of_call(path: Path, call_id: str, since_s: float) -> list[tuple[str, str]]:
    """The lines of one call, made from `since_s` on: where each is (`FILE:LINE`), and its text. Raises `OSError` if
    there is no record.
    """
    # In a name within the line, the quotation marks would be escapes.
    wanted = f'"call_id":{json.dumps(call_id)}'.encode()
    found: list[tuple[str, str]] = []
    with record_files(path) as record:
        for _, file, size in record.files:
            if os.fstat(file.fileno()).st_mtime < since_s - 1.0:
                continue
            for number, text in _lines_with(wanted, file, size):
                found.append(
                    (f"{Path(os.fsdecode(file.name)).name}:{number}", text.decode("utf-8", "backslashreplace"))
                )
                if b'"event":"outcome"' in text:
                    return found
    return found


def _lines_with(wanted: bytes, file: BinaryIO, left: int) -> Iterator[tuple[int, bytes]]:
    """The lines that hold it, with their numbers. In blocks: nearly all lines are others."""
    number, rest = 1, b""
    while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
        left -= len(block)
        lines, ended, rest = (rest + block).rpartition(b"\n")
        if wanted in lines:
            yield from ((at, text) for at, text in enumerate(lines.split(b"\n"), number) if wanted in text)
        number += lines.count(b"\n") + bool(ended)
        rest = rest if len(rest) <= 4 * MAX_LINE_BYTES else b""  # no line of ours


def outcome_of(call: Mapping[str, Any]) -> str:
    """`ok`, the error's code, or that none was recorded: of a call as `last_calls` has it."""
    return str(call.get("error_code") or "ok") if "ended" in call else "none recorded"


def reason_of(call: Mapping[str, Any]) -> str:
    """Who decided and why: `rule Bash(ls)`, `mode default`, `user: mode default, allowed once by the user`."""
    by, rule = str(call.get("by") or ""), _ERROR_CODE.sub("", str(call.get("rule") or ""))
    return rule if not by or rule.startswith(f"{by} ") else f"{by}: {rule}"


def why_of(call: Mapping[str, Any]) -> str:
    """The decision with its reason: `allow by mode default`, `denied by the user; asked by mode default`."""
    who = {("deny", "user"): "denied by the user", ("deny", "nobody"): "nobody decided in time"}.get(
        (str(call.get("decision")), str(call.get("by")))
    )
    if who is not None:
        asked_by = _ERROR_CODE.sub("", str(call.get("rule") or ""))
        return "; asked by ".join(filter(None, (who, asked_by)))
    return " by ".join(part for part in (str(call.get("decision", "")), reason_of(call)) if part)


def parse_since(text: str, now: datetime) -> datetime:
    """`2026-11-22`, `2026-11-22T10:00:00Z`, or `30m`, `12h`, `7d` before now. Raises `InvalidTime`."""
    if text[:-1].isdigit() and len(text) <= 7 and text[-1:] in _UNITS:
        return now - timedelta(**{_UNITS[text[-1]]: int(text[:-1])})
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidTime(text) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _time_of(event: dict[str, Any]) -> datetime:
    try:
        time = datetime.fromisoformat(str(event.get("ts")))
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
