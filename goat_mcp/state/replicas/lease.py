"""A name in the shared state that one replica holds at a time, until it stops renewing it.

Whoever gets it also gets a fencing number, larger than any before. A holder that was stopped and wakes up late sees by
its own clock that its time is over, before it asks anybody; what it writes elsewhere carries the number, so that it can
be refused there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

_ACQUIRE = """
local current = redis.call('GET', KEYS[1])
if current and string.match(current, '^(%d+):') ~= ARGV[3] then return {0, current} end
local fence = redis.call('INCR', KEYS[2])
local now = redis.call('TIME')
local floor = tonumber(now[1]) * 1000000 + tonumber(now[2])
if fence < floor then
  fence = floor
end
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'EX', 86400)
redis.call('SET', KEYS[1], string.format('%.0f', fence) .. ':' .. ARGV[2], 'PX', ARGV[1])
return {fence, ''}
"""
# The floor is the time in µs: a Redis that has lost everything, or the counter a day later, does not begin at 1 again.
_RENEW = """
local current = redis.call('GET', KEYS[1])
if not current or string.match(current, '^(%d+):') ~= ARGV[3] then return 0 end
redis.call('SET', KEYS[1], ARGV[3] .. ':' .. ARGV[2], 'PX', ARGV[1])
return 1
"""
_RELEASE = """
local current = redis.call('GET', KEYS[1])
if not current or string.match(current, '^(%d+):') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""


class Scripts(Protocol):
    """The shared state, as far as leases need it: `state.redis.RedisConnection`."""

    async def run_script(self, script: str, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
        """Keys are without the prefix of the installation. Raises `ToolError(IO)` if the state cannot be reached."""
        ...


def elapsed_s() -> float:
    """Seconds that pass also while this process is stopped, or the machine sleeps."""
    boot_clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_clock is None else _clock(boot_clock)


def _clock(number: int) -> float:
    # Windows has no such call, and no such clock.
    read: Callable[[int], float] = getattr(time, "clock_gettime")  # noqa: B009
    return read(number)


class Lease:
    """One name, as one process sees it: `key` in the shared state, and `fence_key` with the counter of fencing numbers.
    `ttl_s` is how long it lasts unrenewed.

    Its methods raise `ToolError(IO)` if the state cannot be reached.
    """

    def __init__(
        self, state: Scripts, key: str, fence_key: str, ttl_s: float, *, clock: Callable[[], float] = elapsed_s
    ) -> None:
        self._state = state
        self._key = key
        self._fence_key = fence_key
        self._ttl_ms = int(ttl_s * 1000)
        self._clock = clock
        self._held_until_s = 0.0
        self.fence = 0
        """0 if it is not held; what was once held may be over (`is_held`)."""

    @property
    def is_held(self) -> bool:
        """Whether nobody else can have it now. Ask right before each thing that only the holder may do."""
        return self.fence > 0 and self._clock() < self._held_until_s

    async def acquire(self, value: str, *, instead_of: int = 0) -> tuple[int, str] | None:
        """Take the name; None if that worked, else the fence and value of who holds it. `instead_of` is the fence of
        a holder that is known to be gone."""
        asked_s = self._clock()
        self.fence = 0
        fence, current = await self._state.run_script(
            _ACQUIRE, [self._key, self._fence_key], [self._ttl_ms, value, instead_of]
        )
        if not fence:
            return read_holder(current)
        self.fence = int(fence)
        self._held_until_s = asked_s + self._ttl_ms / 1000
        return None

    async def renew(self, value: str) -> bool:
        """Keep it, with another value perhaps. False if it is somebody else's or nobody's now: it is lost."""
        asked_s = self._clock()
        if not self.fence:
            return False
        if not await self._state.run_script(_RENEW, [self._key], [self._ttl_ms, value, self.fence]):
            self.fence = 0
            return False
        self._held_until_s = asked_s + self._ttl_ms / 1000
        return True

    async def release(self) -> None:
        """Let the next one have it at once. What somebody else holds stays."""
        fence, self.fence = self.fence, 0
        if fence:
            await self._state.run_script(_RELEASE, [self._key], [fence])


def read_holder(text: str) -> tuple[int, str]:
    """The fence and the value of who holds a name."""
    fence, _, value = text.partition(":")
    return int(fence), value
