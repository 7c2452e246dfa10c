"""Short-lived state of one client session: what it has read, and where its shell stands.

Keyed by design D6: the process on stdio, the session id on handshake-era HTTP, principal and client name after it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

MAX_SESSIONS = 1000
MAX_READS = 10_000


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A file as this session last read or wrote it. `sha256` is of its whole content."""

    sha256: str
    size: int
    mtime_ns: int
    whole: bool = True


class ReadLedger:
    """Which files a session has seen, by real path; the oldest are forgotten past `MAX_READS`."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, ReadRecord] = OrderedDict()

    def get(self, real_path: str) -> ReadRecord | None:
        return self._seen.get(real_path)

    def record(self, real_path: str, seen: ReadRecord) -> None:
        self._seen[real_path] = seen
        self._seen.move_to_end(real_path)
        if len(self._seen) > MAX_READS:
            self._seen.popitem(last=False)

    def paths(self) -> tuple[str, ...]:
        return tuple(self._seen)


@dataclass
class Session:
    """One client's state. `cwd` is None until its shell has moved; `searches` counts those of the web."""

    reads: ReadLedger = field(default_factory=ReadLedger)
    cwd: Path | None = None
    searches: int = 0


class Sessions:
    """All sessions of the process; the least recently used are dropped past `MAX_SESSIONS`."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[str, Session] = OrderedDict()

    def of(self, session_key: str) -> Session:
        session = self._by_key.setdefault(session_key, Session())
        self._by_key.move_to_end(session_key)
        if len(self._by_key) > MAX_SESSIONS:
            self._by_key.popitem(last=False)
        return session
