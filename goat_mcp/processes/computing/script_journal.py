"""What the calls of a script have brought, written down: another process runs the script again and goes on from there.

A script has no clock but the one it is given, and nothing random. So with the same results it comes to the same calls,
and each of them finds its own result here, by its tool and arguments: no call is made twice.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anyio

MAX_KEPT_CHARS = 1024 * 1024
"""Of results. A script with more goes on in its own process only."""
MAX_RECORD_CHARS = 48 * 1024
"""Packed, for it travels to the client and back."""


@dataclass(frozen=True)
class CallOutcome:
    """The data that a call brought, or why it failed."""

    data: Any
    failure: str = ""


@dataclass(eq=False)
class ScriptJournal:
    """Of one script. `began` is the time that its clock shows."""

    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    _lines: list[str] = field(default_factory=list[str])
    _chars: int = 0
    _earlier: dict[str, deque[CallOutcome]] = field(default_factory=dict[str, deque[CallOutcome]])
    _caught_up: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self._caught_up.set()

    @classmethod
    def read(cls, record: str) -> ScriptJournal:
        """What `record` wrote. Raises `ValueError`."""
        try:
            packed = base64.urlsafe_b64decode(record + "=" * (-len(record) % 4))
            began, *lines = zlib.decompress(packed).decode().split("\n")
        except (binascii.Error, zlib.error) as problem:
            raise ValueError(f"this is no record of a script: {problem}") from None
        journal = cls(datetime.fromisoformat(began))
        for line in lines:
            tool, arguments, data, failure = json.loads(line)
            journal._earlier.setdefault(_key(tool, arguments), deque()).append(CallOutcome(data, failure))
        if journal._earlier:
            journal._caught_up = anyio.Event()
        return journal

    def note(self, tool: str, arguments: Mapping[str, Any], outcome: CallOutcome) -> None:
        """A call has ended."""
        if self._chars > MAX_KEPT_CHARS:
            return
        line = json.dumps([tool, arguments, outcome.data, outcome.failure])
        self._chars += len(line)
        self._lines.append(line)
        if self._chars > MAX_KEPT_CHARS:
            self._lines.clear()

    def record(self) -> str:
        """All that was noted; empty if that is too much."""
        if self._chars > MAX_KEPT_CHARS:
            return ""
        packed = zlib.compress("\n".join([self.began.isoformat(), *self._lines]).encode())
        record = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        return record if len(record) <= MAX_RECORD_CHARS else ""

    def earlier(self, tool: str, arguments: Mapping[str, Any]) -> CallOutcome | None:
        """What the call brought in the process before, once for each time it was made there."""
        key = _key(tool, arguments)
        if not (outcomes := self._earlier.get(key)):
            return None
        outcome = outcomes.popleft()
        if not outcomes:
            del self._earlier[key]
        if not self._earlier:
            self._caught_up.set()
        self.note(tool, arguments, outcome)
        return outcome

    async def caught_up(self) -> None:
        """Wait until the script is where it was: all earlier calls have been asked for again."""
        await self._caught_up.wait()


def _key(tool: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([tool, arguments], sort_keys=True)
