"""What an upstream sends unasked: lists that changed, resources that were updated; and how much of it is read.

The rest of a flood is dropped unread, as fast as it comes (R-UP-3). A notice is recognised without parsing it, by an
expression that takes the whole line. What it does not take is parsed: a line with an id, or with any member that a
notice does not have, is never dropped.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.upstreams.envelope import passing_meta
from goat_mcp.upstreams.transports.progress_meta import ProgressMeta

OnUpdated = Callable[[str, Mapping[str, Any]], None]
"""Gets the URI of a resource that was updated, and the `_meta` that passes with the notice (REL-5)."""
LOGS = "notifications/message"
PROGRESS = "notifications/progress"
_LISTS = {"notifications/resources/list_changed": "resources", "notifications/prompts/list_changed": "prompts"}
_UPDATED = "notifications/resources/updated"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def _nobody(uri: str, meta: Mapping[str, Any]) -> None:
    """Nobody watches a resource of this connection."""


@dataclass
class UpstreamNotifications:
    """Of one connection. `on_updated` hears each URI at once, with the `_meta` of the notice, and must not block."""

    on_updated: OnUpdated = _nobody
    progress_meta: ProgressMeta = field(default_factory=ProgressMeta)
    acknowledged: Mapping[str, Any] | None = None
    """What the last change stream was acknowledged to tell of."""
    acknowledgement: anyio.Event = field(default_factory=anyio.Event)
    _changed: set[str] = field(default_factory=set[str])
    _came: anyio.Event = field(default_factory=anyio.Event)

    def take(self, method: str, params: Mapping[str, Any] | None) -> None:
        if (kind := _LISTS.get(method)) is not None:
            self.mark(kind)
        elif method == PROGRESS:
            self.progress_meta.take(params or {})
        elif method == _UPDATED and isinstance(uri := (about := params or {}).get("uri"), str):
            self.on_updated(uri, passing_meta(about.get("_meta")))
        elif method == _ACKNOWLEDGED:
            honoured = (params or {}).get("notifications")
            self.acknowledged = cast("dict[str, Any]", honoured) if isinstance(honoured, dict) else {}
            self.acknowledgement.set()

    def mark(self, *kinds: str) -> None:
        """These lists are to be read again."""
        self._changed.update(kinds)
        self._came.set()

    def changed(self) -> Set[str]:
        """The lists that changed since this was asked last."""
        changed, self._changed = self._changed, set()
        self._came = anyio.Event()
        return changed

    @property
    def is_any(self) -> bool:
        """Whether lists have changed since."""
        return bool(self._changed)

    async def wait(self) -> None:
        """Until some list has changed."""
        await self._came.wait()


READ_PER_S = 500.0
READ_AT_ONCE = 1_000.0
"""Of each kind: log messages, progress, and all others together. Clients get fewer in any case."""
MAX_HELD = 256
"""Different notices of other kinds that are kept for later: that a list has changed must not be lost."""
_OTHERS = "others"
_LEVELS = 16
"""Objects and lists in one another that the expression looks into."""


def _notice() -> re.Pattern[bytes]:
    space = rb"[ \t\r]*+"
    string = rb'"(?>(?:[^"\\\x00-\x1f]++|\\.)*)"'
    inside = rb'(?>(?:[^][{}"]++|' + string + rb")*)"
    for _ in range(_LEVELS):
        inside = rb'(?>(?:[^][{}"]++|' + string + rb"|[\[{]" + inside + rb"[\]}])*)"
    members = (
        rb'"jsonrpc"' + space + rb":" + space + rb'"2\.0"',
        rb'"method"' + space + rb":" + space + rb'"(notifications/[A-Za-z_/]++)"',
        rb'"params"' + space + rb":" + space + rb"\{" + inside + rb"\}",
    )
    member = rb"(?:" + rb"|".join(members) + rb")"
    return re.compile(space + rb"\{(?>(?:" + space + member + space + rb"(?:,|(?=\})))+)\}" + space + rb"\Z", re.DOTALL)


_NOTICE = _notice()


class NotificationLimits:
    """Of one connection. `dropped` counts the notices that nobody read."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.dropped = 0
        self._allowances = {kind: TokenBucket(READ_PER_S, READ_AT_ONCE, clock) for kind in (LOGS, PROGRESS, _OTHERS)}
        self._flooded: set[str] = set()
        """The kinds of which more came than are read, as far as is known. Empty as a rule: nothing is looked at."""
        self._held: dict[bytes, None] = {}

    @property
    def holds_some(self) -> bool:
        return bool(self._held)

    def took(self, method: str) -> None:
        """A notice was parsed."""
        kind = method if method in self._allowances else _OTHERS
        if self._allowances[kind].spend(1.0):
            self._flooded.add(kind)

    def leaves_unread(self, line: bytes | bytearray) -> bool:
        """Whether the line is a notice beyond what is read now: it is dropped, or held for later."""
        if not self._flooded:
            return False
        found = _NOTICE.match(line)
        if found is None or found[1] is None:
            return False
        method = found[1].decode("ascii")
        kind = method if method in self._allowances else _OTHERS
        if kind not in self._flooded:
            return False
        if not self._allowances[kind].spend(0.0):
            self._flooded.discard(kind)
            return False
        if kind != _OTHERS:
            self.dropped += 1
        elif (held := bytes(line)) not in self._held:
            if len(self._held) < MAX_HELD:
                self._held[held] = None
            else:
                self.dropped += 1
        return True

    def admits(self, text: bytes) -> bool:
        """Whether a message is read now: all are but log messages and progress beyond the limits, which are counted."""
        found = _NOTICE.match(text)
        if found is None or found[1] is None:
            return True
        allowance = self._allowances.get(found[1].decode("ascii"))
        if allowance is None or allowance.take():
            return True
        self.dropped += 1
        return False

    def take_held(self, *, all_of_it: bool = False) -> Iterator[bytes]:
        """The lines that may be read now, oldest first. Each must be parsed before the next is taken."""
        while self._held and (all_of_it or not self._allowances[_OTHERS].spend(0.0)):
            line = next(iter(self._held))
            del self._held[line]
            yield line
