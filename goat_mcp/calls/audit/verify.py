"""Whether a record of calls is unchanged: numbers without a gap, and in each line the hash of the line before.

A tail that was cut off, or lines that were all rewritten from some point on, show only against a head stored elsewhere.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from goat_mcp.calls.audit.chain import NO_LINE, hash_of
from goat_mcp.calls.audit.records import RecordLine, record_files

_HEAD = re.compile(r"(?:(?P<seq>\d{1,18}):)?(?P<hash>[0-9a-f]{64})")


class InvalidHead(ValueError):
    """The text is not what `head` of a verification looks like."""


@dataclass(frozen=True)
class RecordFault:
    """`location` is FILE:LINE."""

    location: str
    problem: str


@dataclass
class Verification:
    """The result. `bad` is the first line that is not as it was written, None if all are.

    `gaps` are marked by the writers themselves: a line torn by a crash, calls that could not be recorded on a full
    disk. They are no forgeries, but a reader should know them. `is_finished` is False if the time was over before.
    """

    events: int = 0
    files: list[str] = field(default_factory=list[str])
    first_seq: int = 0
    last_seq: int = 0
    head: str = ""
    bad: RecordFault | None = None
    gaps: list[RecordFault] = field(default_factory=list[RecordFault])
    is_finished: bool = True
    anchors: int | None = None
    """With how many heads that were kept in the shared state it was compared; None if there is no such state."""

    @property
    def is_intact(self) -> bool:
        return self.bad is None

    @property
    def in_words(self) -> str:
        """For people, on the terminal and on the page alike."""
        lines = [f"gap: {gap.location} {gap.problem}" for gap in self.gaps if gap != self.bad]
        if self.bad is not None:
            return "\n".join([*lines, f"not intact: {self.bad.location} {self.bad.problem}"])
        if not self.is_finished:
            return "\n".join([*lines, f"not finished: the first {self.events} events are intact, more were not read"])
        files = f"{len(self.files)} file{'s' if len(self.files) != 1 else ''}"
        lines.append(f"intact: {self.events} events in {files}, numbers {self.first_seq} to {self.last_seq}")
        if self.first_seq > 1:
            lines.append(f"Those before number {self.first_seq} were in files that are not kept any more.")
        if self.anchors is not None:
            kept = f"as in {self.anchors} heads kept in the shared state" if self.anchors else _NOT_ANCHORED
            lines.append(f"anchors: {kept}")
        lines.append(f"head: {self.head}")
        return "\n".join(lines)


def parse_head(text: str) -> tuple[int, str]:
    """`SEQ:HASH` or `HASH`; a number of 0 if there is none. Raises `InvalidHead`."""
    match = _HEAD.fullmatch(text.strip().lower())
    if match is None:
        raise InvalidHead(text)
    return int(match.group("seq") or 0), match.group("hash")


def verify(
    path: Path,
    *,
    expected: tuple[int, str] | None = None,
    anchors: Sequence[str] | None = None,
    timeout_s: float = math.inf,
) -> Verification:
    """Read the record from its oldest kept line. Raises `OSError` if there is none.

    `expected` is a head kept from an earlier time: it must be among the lines. So must `anchors`, but for those whose
    lines were in files that are not kept any more. After `timeout_s` no more is read.
    """
    with record_files(path) as record:
        found = Verification(files=[Path(str(file.name)).name for _, file, _ in record.files])
        found.anchors = None if anchors is None else len(anchors)
        chain = _Chain(found, expected, dict(map(parse_head, anchors or ())))
        chain.give_up_s = time.monotonic() + timeout_s
        chain.read(record.lines(), [number for number, _, _ in record.files])
    return chain.found


@dataclass(frozen=True)
class _ParsedLine:
    """A line with its record, None if it has none of ours."""

    line: RecordLine
    seq: int
    record: dict[str, Any] | None

    @property
    def torn_bytes(self) -> int:
        """How long the torn line before this one is, if this marks one."""
        record = self.record or {}
        is_mark = record.get("event") == "gap" and record.get("reason") == "torn"
        return record["torn_bytes"] if is_mark and isinstance(record.get("torn_bytes"), int) else 0


class _Chain:
    def __init__(self, found: Verification, expected: tuple[int, str] | None, anchors: Mapping[int, str]) -> None:
        self.found = found
        self._anchors = anchors
        """Hashes by their numbers."""
        self.give_up_s = math.inf
        self._expected = expected
        self._seen_expected = expected is None
        self._before: _ParsedLine | None = None
        self._seq = 0
        self._prev = NO_LINE
        self._oldest = 0
        """The oldest file that was there after the last rotation."""

    def read(self, lines: Iterator[RecordLine], numbers: list[int]) -> None:
        wanted_files = iter(numbers)
        file: Path | None = None
        waiting: _ParsedLine | None = None
        for line in lines:
            if time.monotonic() > self.give_up_s:
                self.found.is_finished = False
                return
            read = _parse(line)
            if waiting is not None and not self._take(waiting, followed_by=read):
                return
            if line.file != file:
                file = line.file
                number = next(wanted_files, 0)
                if not self._take_file_start(read, number, is_first=waiting is None):
                    return
            waiting = read
        if waiting is not None and not self._take(waiting, followed_by=None):
            return
        if self._oldest and self._oldest not in numbers:
            self._bad(f"{self.found.files[0]}:1", f"is the first line, and file number {self._oldest} is missing")
            return
        self._end()

    def _take(self, read: _ParsedLine, *, followed_by: _ParsedLine | None) -> bool:
        """Check one line and go on to it. False if it is bad."""
        line = read.line
        if followed_by is not None and followed_by.torn_bytes == len(line.text) > 0:
            # Its writer was ended in the middle of it; the mark after it says so, and holds its hash.
            self._prev = hash_of(line.text)
            self._before = None
            return True
        if read.record is None or not line.is_whole:
            torn = not line.is_whole and followed_by is None
            problem = "is not whole: its writer was ended in the middle of it" if torn else "is not a line of a record"
            if torn and line.file.name == self.found.files[-1]:
                # The next writer will mark it.
                self.found.gaps.append(RecordFault(line.location, problem))
                return True
            return self._bad(line.location, problem)
        first = self.found.events == 0
        prev = read.record.get("prev")
        if first:
            if read.seq == 1 and prev != NO_LINE:
                return self._bad(line.location, "is the first line and says that there was one before it")
            if read.seq != 1 and read.record.get("event") != "rotated":
                return self._bad(line.location, f"has number {read.seq}; the lines before it are missing")
            self.found.first_seq = read.seq
            if self._expected is not None and self._expected[1] == prev:
                self._seen_expected = True
        elif read.seq != self._seq + 1:
            return self._bad(
                line.location, f"has number {read.seq} and follows number {self._seq}: {_gap(read, self._seq)}"
            )
        elif prev != self._prev:
            changed = self._before.line.location if self._before is not None else line.location
            return self._bad(changed, f"is not as it was written: {line.location} holds the hash of another line")
        self._go_on(read)
        if self._anchors.get(read.seq, self._prev) != self._prev:
            return self._bad(line.location, f"has number {read.seq} and is not the line that was kept as a head")
        return True

    def _go_on(self, read: _ParsedLine) -> None:
        assert read.record is not None
        self._before = read
        self._seq = read.seq
        self._prev = hash_of(read.line.text)
        self.found.events += 1
        if self._expected is not None and self._expected[1] == self._prev:
            self._seen_expected = self._expected[0] in (0, self._seq)
        if read.record.get("event") == "rotated" and isinstance(oldest := read.record.get("oldest"), int):
            self._oldest = oldest
        if read.record.get("event") == "gap":
            self.found.gaps.append(RecordFault(read.line.location, _gap_text(read.record)))

    def _take_file_start(self, read: _ParsedLine, number: int, *, is_first: bool) -> bool:
        """A file after a rotation says which one it is and which the oldest kept one was."""
        record = read.record or {}
        if record.get("event") != "rotated":
            if not is_first or read.seq > 1:
                return self._bad(
                    read.line.location, "does not begin as a file after a rotation does: its head is missing"
                )
            return True
        if number and record.get("file") != number:
            return self._bad(read.line.location, f"begins file {record.get('file')} and is named as file {number}")
        return True

    def _end(self) -> None:
        found = self.found
        found.last_seq = self._seq
        found.head = f"{self._seq}:{self._prev}" if found.events else ""
        cut = next((gap for gap in found.gaps if gap.problem.startswith(_CUT)), None)
        if cut is not None and found.bad is None:
            found.bad = cut
        last_anchor = max(self._anchors, default=0)
        if last_anchor > self._seq and found.bad is None:
            location = self._before.line.location if self._before is not None else str(found.files[-1:])
            found.bad = RecordFault(
                location, f"has number {self._seq} and is the last line, but number {last_anchor} was kept: cut"
            )
        if self._seen_expected or found.bad is not None or self._expected is None:
            return
        seq, _ = self._expected
        if seq and seq < found.first_seq - 1:
            found.bad = RecordFault(
                found.files[0], f"begins with number {found.first_seq}; number {seq} was in a file that is not kept"
            )
        else:
            location = self._before.line.location if self._before is not None else str(found.files[-1:])
            found.bad = RecordFault(
                location, "is the last line, and the head that was kept is not in the record: cut, or rewritten"
            )

    def _bad(self, location: str, problem: str) -> bool:
        self.found.bad = RecordFault(location, problem)
        self.found.last_seq = self._seq
        return False


_CUT = "lines are gone"
_NOT_ANCHORED = "the shared state has no head of this record; a cut tail would not show"


def _gap_text(record: dict[str, Any]) -> str:
    match record.get("reason"):
        case "torn":
            return f"a line of {record.get('torn_bytes')} bytes before this one was not written whole"
        case "lost":
            return f"{record.get('lost')} lines could not be written before this one"
        case "cut":
            return f"{_CUT}: number {record.get('cut_seq')} was there when process {record.get('pid')} wrote before"
        case other:
            return f"a gap: {other}"


def _gap(read: _ParsedLine, seq: int) -> str:
    return "lines between them are missing" if read.seq > seq + 1 else "it is not in its place"


def _parse(line: RecordLine) -> _ParsedLine:
    try:
        record: Any = json.loads(line.text)
    except (ValueError, RecursionError):
        return _ParsedLine(line, 0, None)
    if not isinstance(record, dict):
        return _ParsedLine(line, 0, None)
    members = cast("dict[str, Any]", record)
    seq = members.get("seq")
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 1:
        return _ParsedLine(line, 0, None)
    return _ParsedLine(line, seq, members)
