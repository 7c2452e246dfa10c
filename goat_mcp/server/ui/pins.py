"""What a server offers now beside what is pinned of it in `goat.lock`, as two columns, first sights included."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from goat_mcp.calls.approvals.record import Approval, Kind
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.listing.suspicious_texts import why_suspicious
from goat_mcp.upstreams.pinning.pin_lock import LockContent, PinLock, PinnedDefinitions
from goat_mcp.upstreams.pinning.pin_review import Waiting, both_sides, suspicious_in, waiting_in

CONTEXT_LINES = 3
MAX_ROWS = 400
MAX_LINE_CHARS = 4000
MAX_WAITING = 50


class Row(NamedTuple):
    """One line of both columns. `kind`: `same`, `changed`, `removed`, `added`, or `left-out` for equal lines."""

    kind: str
    before: str
    after: str


@dataclass(frozen=True)
class WaitingPin:
    """One definition that waits. `approval` is its record in the queue, empty if there is none yet."""

    target: str
    is_new: bool
    risk: str
    careful: tuple[str, ...]
    rows: Sequence[Row]
    approval: str = ""
    together: Sequence[str] = ()
    """The others that are decided with it."""


@dataclass(frozen=True)
class ServerPinsView:
    """`pinned` is how many definitions are, `suspicious` which of those a person should read and why."""

    pinned: int = 0
    waiting: Sequence[WaitingPin] = ()
    more: int = 0
    suspicious: Sequence[str] = ()
    distrust: str = ""


class PinsView:
    """Reads the lock again when it has changed. Blocking, but for what it read before."""

    def __init__(self, state: StateDirectory) -> None:
        self._lock = PinLock(state)
        self._definitions = PinnedDefinitions(state)
        self._content: LockContent | None = None
        self._known: dict[str, ServerPinsView] = {}

    def waiting_counts(self) -> dict[str, int]:
        """How many definitions wait, by the name a server has in the lock."""
        counts: dict[str, int] = {}
        for one in waiting_in(self._lock.content()):
            counts[one.server] = counts.get(one.server, 0) + 1
        return counts

    def of(self, server: str, approvals: Sequence[Approval]) -> ServerPinsView:
        content = self._lock.content()
        if content is not self._content:
            self._content, self._known = content, {}
        if server not in self._known:
            self._known[server] = self._read(server, content)
        known = self._known[server]
        waiting = [_with_approval(one, server, approvals) for one in known.waiting]
        return ServerPinsView(known.pinned, waiting, known.more, known.suspicious, content.distrust)

    def _read(self, server: str, content: LockContent) -> ServerPinsView:
        waiting = [one for one in waiting_in(content) if one.server == server]
        pinned = [one for one in suspicious_in(content, self._definitions, {server}) if not one.waits]
        shown = [self._waiting(one) for one in waiting[:MAX_WAITING]]
        more = max(0, len(waiting) - MAX_WAITING)
        return ServerPinsView(content.of(server).count, shown, more, [str(one) for one in pinned])

    def _waiting(self, one: Waiting) -> WaitingPin:
        definition = self._definitions.some(one.server, {one.after}).get(one.after)
        careful = tuple(why_suspicious(definition, one.server)) if definition is not None else ()
        return WaitingPin(one.target, not one.before, one.risk, careful, rows(*both_sides(one, self._definitions)))


def _with_approval(one: WaitingPin, server: str, approvals: Sequence[Approval]) -> WaitingPin:
    for approval in approvals:
        facts = approval.request.facts
        names = [str(name) for name in facts.get("names", ())]
        if approval.request.kind is Kind.DEFINITION and facts.get("server") == server and one.target in names:
            others = [name for name in names if name != one.target]
            return WaitingPin(one.target, one.is_new, one.risk, one.careful, one.rows, approval.id, others)
    return one


def rows(before: Sequence[str], after: Sequence[str]) -> list[Row]:
    """Both columns, equal lines far from any change left out."""
    found = list(_rows(before, after))
    if len(found) > MAX_ROWS:
        left = len(found) - MAX_ROWS
        found = [*found[:MAX_ROWS], Row("left-out", f"{left} more lines", f"{left} more lines")]
    return [Row(one.kind, _cut(one.before), _cut(one.after)) for one in found]


def _rows(before: Sequence[str], after: Sequence[str]) -> Iterator[Row]:
    for kind, a, a_end, b, b_end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from _equal(before[a:a_end], is_first=a == 0, is_last=a_end == len(before))
            continue
        old, new = before[a:a_end], after[b:b_end]
        for at in range(max(len(old), len(new))):
            left, right = old[at] if at < len(old) else "", new[at] if at < len(new) else ""
            kind_of_row = "changed" if at < min(len(old), len(new)) else "removed" if at < len(old) else "added"
            yield Row(kind_of_row, left, right)


def _equal(lines: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[Row]:
    head = 0 if is_first else CONTEXT_LINES
    tail = 0 if is_last else CONTEXT_LINES
    left = len(lines) - head - tail
    if left <= 1:
        yield from (Row("same", line, line) for line in lines)
        return
    yield from (Row("same", line, line) for line in lines[:head])
    text = f"{left} equal lines"
    yield Row("left-out", text, text)
    yield from (Row("same", line, line) for line in lines[len(lines) - tail :])


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]} ..."
