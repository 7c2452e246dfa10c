"""A stream of events over HTTP without the notices that are beyond what is read: they are dropped before anybody parses
them (R-UP-3). All other events, and whatever is in doubt, pass as they came.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import anyio
import httpx2

from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.upstreams.transports.notice_limits import NoticeLimits

_EVENT = re.compile(rb"(?>(?:event: ?message\r?\n|id: ?[^\r\n]*\r?\n)*)data: ?(\{[^\r\n]*\})\r?\n\r?\n")
_END = re.compile(rb"\r?\n\r?\n")
_BARE_RETURN = re.compile(rb"\r[^\n]")
_MAX_HELD_BYTES = 64 * 1024
"""Of an event that is not whole yet; a longer one passes."""
_BYTES_PER_S = 16 * 1024 * 1024
"""Of notices that are dropped: about 100,000 small ones."""


class UnfloodedEvents(httpx2.AsyncByteStream):
    """`limits` are those of the connection, which may have several streams."""

    def __init__(self, body: httpx2.AsyncByteStream, limits: NoticeLimits) -> None:
        self._body = body
        self._limits = limits
        self._dropped = TokenBucket(_BYTES_PER_S, _BYTES_PER_S)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held = b""
        passes_all = False  # it has line ends that nobody writes: all of it passes
        is_inside = False  # of an event whose beginning has passed
        async for chunk in self._body:
            held += chunk
            if passes_all or (passes_all := b"\r" in held and _BARE_RETURN.search(held) is not None):
                yield held
                held = b""
                continue
            end = max(held.rfind(b"\n\n") + 2, held.rfind(b"\n\r\n") + 3)
            if end < 3:
                if is_inside or len(held) > _MAX_HELD_BYTES:
                    is_inside = True
                    # What may be the beginning of its end stays.
                    yield held[:-3]
                    held = held[-3:]
                continue
            whole, held = held[:end], held[end:]
            begin = 0
            if is_inside and (found := _END.search(whole)) is not None:
                begin, is_inside = found.end(), False
            passed = self._passed(whole, begin)
            if len(passed) < len(whole) and (wait_s := self._dropped.spend(len(whole) - len(passed))):
                await anyio.sleep(wait_s)
            if passed:
                yield passed
        if held:
            yield held

    def _passed(self, events: bytes, begin: int) -> bytes:
        """What is left of whole events. What comes before `begin` is the rest of one that has passed."""
        parts = [events[:begin]]
        at = begin
        while at < len(events):
            found = _EVENT.match(events, at)
            if found is not None:
                end = found.end()
                is_passed = self._limits.admits(found[1])
            elif events[at] in b"\r\n":
                end, is_passed = at + 1, True
            else:
                end = ended.end() if (ended := _END.search(events, at)) is not None else len(events)
                is_passed = True
            if is_passed:
                parts.append(events[at:end])
            at = end
        return b"".join(parts)

    async def aclose(self) -> None:
        await self._body.aclose()
