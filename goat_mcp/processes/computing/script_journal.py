"""What the calls of a script have brought, written down: another process runs the script again and goes on from there.

A script has no clock but the one it is given, and nothing random. So with the same results it comes to the same calls,
and each of them finds its own result here, by its tool, its arguments and how often they were asked for before: no call
is made twice.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anyio

MAX_KEPT_CHARS = 1024 * 1024
"""Of results. A script with more goes on in its own process only."""
MAX_RECORD_CHARS = 48 * 1024
"""Packed, for it travels to the client and back."""
_MAX_UNPACKED_BYTES = 8 * MAX_KEPT_CHARS


@dataclass(frozen=True)
class AskedCall:
    """One call of a script: the `number`th with this tool and these arguments."""

    tool: str
    arguments: Mapping[str, Any]
    number: int

    @property
    def key(self) -> str:
        return json.dumps([self.tool, self.arguments, self.number], sort_keys=True)


@dataclass(frozen=True)
class CallOutcome:
    """The data that a call brought, or why it failed."""

    data: Any
    failure: str = ""


@dataclass(eq=False)
class ScriptJournal:
    """Of one script. `began` is the time that its clock shows; `asking` the key of the call whose question it waited
    for in the process before, empty if there was none."""

    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    asking: str = ""
    _lines: list[str] = field(default_factory=list[str])
    _chars: int = 0
    _asked: Counter[str] = field(default_factory=Counter[str])
    _earlier: dict[str, CallOutcome] = field(default_factory=dict[str, CallOutcome])
    _is_asked_again: bool = False
    _caught_up: anyio.Event = field(default_factory=anyio.Event)

    @classmethod
    def read(cls, record: str) -> ScriptJournal:
        """What `record` wrote. Raises `ValueError`."""
        unpacking = zlib.decompressobj()
        try:
            packed = base64.urlsafe_b64decode(record + "=" * (-len(record) % 4))
            began, asking, *lines = unpacking.decompress(packed, _MAX_UNPACKED_BYTES).decode().split("\n")
        except (binascii.Error, zlib.error) as problem:
            raise ValueError(f"this is no record of a script: {problem}") from None
        journal = cls(datetime.fromisoformat(began), asking)
        for line in lines:
            tool, arguments, number, data, failure = json.loads(line)
            journal._earlier[AskedCall(tool, arguments, number).key] = CallOutcome(data, failure)
        return journal

    def asked(self, tool: str, arguments: Mapping[str, Any]) -> AskedCall:
        """The script asks for a call."""
        same = json.dumps([tool, arguments], sort_keys=True)
        self._asked[same] += 1
        call = AskedCall(tool, arguments, self._asked[same])
        self._is_asked_again = self._is_asked_again or call.key == self.asking
        self._look()
        return call

    def note(self, call: AskedCall, outcome: CallOutcome) -> CallOutcome:
        """A call has ended. Returns the outcome as it is read again: as JSON has it."""
        if self._chars > MAX_KEPT_CHARS:
            return outcome
        line = json.dumps([call.tool, call.arguments, call.number, outcome.data, outcome.failure])
        self._chars += len(line)
        self._lines.append(line)
        if self._chars > MAX_KEPT_CHARS:
            self._lines.clear()
        *_, data, failure = json.loads(line)
        return CallOutcome(data, failure)

    def record(self, asking: AskedCall) -> str:
        """All that was noted, for a process that goes on after the question of this call; empty if that is too much."""
        if self._chars > MAX_KEPT_CHARS:
            return ""
        packed = zlib.compress("\n".join([self.began.isoformat(), asking.key, *self._lines]).encode())
        record = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        return record if len(record) <= MAX_RECORD_CHARS else ""

    def earlier(self, call: AskedCall) -> CallOutcome | None:
        """What the call brought in the process before."""
        outcome = self._earlier.pop(call.key, None)
        if outcome is not None:
            self.note(call, outcome)
            self._look()
        return outcome

    async def caught_up(self) -> None:
        """Wait until all earlier calls have been asked for again, and the one that asked."""
        await self._caught_up.wait()

    def _look(self) -> None:
        if not self._earlier and (self._is_asked_again or not self.asking):
            self._caught_up.set()
