"""Which replica holds which work that another one could go on with, in a Stream of Redis with one group.

Work is held from before its id is given away until its end is recorded. What a replica that has ended held, a live one
claims: one of all that try. Who holds it no more writes nothing of it: each write asks in the same step. A Redis that
was emptied, set back or failed over may have lost that work was taken or done, so what is claimed there is not run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.replicas.lease import Scripts
from goat_mcp.state.replicas.registry import ReplicaRegistry

KEPT_S = 24 * 3600
"""How long work waits for a replica."""
WAIT_S = 30.0
RETRY_S = 0.2
_STREAM = "tasks:held"
_MAX_SEEN = 1000
_RUN = "local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')\n"
_IS_HELD = """
local function is_held(by)
  local pending = redis.pcall('XPENDING', KEYS[1], 'replicas', ARGV[1], ARGV[1], 1)
  return not pending.err and #pending == 1 and pending[1][2] == by
end
"""
_HOLD = (
    _RUN
    + """
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('XGROUP', 'CREATE', KEYS[1], 'replicas', '0', 'MKSTREAM')
end
redis.call('SET', KEYS[2], ARGV[3], 'EX', ARGV[4])
local entry = redis.call('XADD', KEYS[1], '*', 'task', ARGV[2], 'run', run)
redis.call('XCLAIM', KEYS[1], 'replicas', ARGV[1], 0, entry, 'FORCE', 'JUSTID')
return {entry, run}
"""
)
_RENEW = (
    _RUN
    + _IS_HELD
    + """
if is_held(ARGV[2]) then
  redis.call('XCLAIM', KEYS[1], 'replicas', ARGV[3], 0, ARGV[1], 'FORCE', 'JUSTID')
  return 'held'
end
return run == ARGV[4] and 'taken' or 'forgotten'
"""
)
_WRITE = (
    _IS_HELD
    + """
if not is_held(ARGV[2]) then return 0 end
redis.call('SET', KEYS[2], ARGV[3], 'EX', ARGV[4])
return 1
"""
)
_LET_GO = (
    _IS_HELD
    + """
if not is_held(ARGV[2]) then return 0 end
redis.call('XACK', KEYS[1], 'replicas', ARGV[1])
redis.call('XDEL', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return 1
"""
)
_SEEN = """
local pending = redis.pcall('XPENDING', KEYS[1], 'replicas', '-', '+', ARGV[1])
if pending.err then return {} end
local found = {}
for _, one in ipairs(pending) do
  table.insert(found, one[1])
  table.insert(found, one[2])
end
return found
"""
_CLAIM = (
    _RUN
    + _IS_HELD
    + """
if not is_held(ARGV[2]) then return {} end
local found = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])
if #found == 0 then
  redis.call('XACK', KEYS[1], 'replicas', ARGV[1])
  return {}
end
redis.call('XCLAIM', KEYS[1], 'replicas', ARGV[3], 0, ARGV[1], 'FORCE', 'JUSTID')
local fields = found[1][2]
return {fields[2], fields[4], run}
"""
)


@dataclass(frozen=True)
class _Hold:
    entry: str
    run: str
    """Of the Redis that has it."""
    text: str
    """What another replica needs to go on, encrypted."""


@dataclass(frozen=True)
class Claimed:
    """Work of a replica that has ended. `is_known`: Redis has seen all that was recorded of it."""

    task_id: str
    is_known: bool


class HeldWork:
    """What this replica holds. `on_taken` is called with each task that another one has taken meanwhile."""

    def __init__(self, state: Scripts, registry: ReplicaRegistry) -> None:
        self._state = state
        self._registry = registry
        self._held: dict[str, _Hold] = {}
        self._handed_over: set[str] = set()
        self._fence = 0
        self._renewing = anyio.Lock()
        self._stood_still = False
        self.on_taken: Callable[[str], object] = lambda task_id: None
        registry.on_lost(self._note_loss)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self._held)

    def is_held(self, task_id: str) -> bool:
        return task_id in self._held

    def is_handed_over(self, task_id: str) -> bool:
        """Whether another replica has taken it, or is to take it: nothing of it is recorded here any more."""
        return task_id in self._handed_over

    async def hold(self, task_id: str, text: str) -> None:
        """Before its id is given away. Raises `ToolError(IO)`."""
        await self._use_fence()
        arguments = [self._me, task_id, text, KEPT_S]
        entry, run = await self._state.run_script(_HOLD, [_STREAM, restart_key(task_id)], arguments)
        self._handed_over.discard(task_id)
        self._held[task_id] = _Hold(entry, run, text)

    async def write(self, task_id: str, key: str, text: str, *, lasts_s: int) -> bool:
        """Write `text` if this replica holds the task. Raises `ToolError(IO)`."""
        hold = self._held.get(task_id)
        if hold is None:
            return False
        return bool(await self._state.run_script(_WRITE, [_STREAM, key], [hold.entry, self._me, text, lasts_s]))

    async def let_go(self, task_id: str) -> None:
        """It has ended, and that is recorded. Raises `ToolError(IO)`."""
        hold = self._held.pop(task_id, None)
        if hold is not None:
            await self._state.run_script(_LET_GO, [_STREAM, restart_key(task_id)], [hold.entry, self._me])

    def hand_over(self) -> tuple[str, ...]:
        """This replica ends. Others take what it holds once its lease is over. Returns that."""
        self._handed_over.update(self._held)
        return self.tasks

    async def check(self) -> None:
        """Before something is done for work that another replica could have taken. Raises `ToolError(IO)` if this
        replica is cut off from the others."""
        until_s = time.monotonic() + WAIT_S
        while not self._registry.is_held or self._registry.is_fenced:
            if time.monotonic() > until_s:
                raise ToolError(
                    ErrorCode.IO,
                    "this replica has no connection to the shared state, and another one may go on with this work",
                    "Look at the Redis of state.url with goat-mcp doctor; then resume the agent by its id.",
                )
            await anyio.sleep(RETRY_S)
        await self.renew()

    async def renew(self) -> None:
        """Hold everything under the name that this replica has now. Raises `ToolError(IO)`."""
        if self._fence == self._registry.me.fence:
            return
        async with self._renewing:
            fence = self._registry.me.fence
            for task_id, hold in list(self._held.items()):
                new = _consumer(self._registry.me.name, fence)
                arguments = [hold.entry, self._me, new, hold.run]
                found = await self._state.run_script(_RENEW, [_STREAM], arguments)
                if found == "held":
                    continue
                del self._held[task_id]
                if found == "forgotten" and not self._stood_still:
                    # Nobody has it: this process was alive all the time, and Redis has lost what was in it.
                    arguments = [new, task_id, hold.text, KEPT_S]
                    entry, run = await self._state.run_script(_HOLD, [_STREAM, restart_key(task_id)], arguments)
                    self._held[task_id] = _Hold(entry, run, hold.text)
                    continue
                self._handed_over.add(task_id)
                self.on_taken(task_id)
            self._fence, self._stood_still = fence, False

    async def claim(self) -> list[Claimed]:
        """What replicas held that are no more. Raises `ToolError(IO)`."""
        seen: list[str] = await self._state.run_script(_SEEN, [_STREAM], [_MAX_SEEN])
        pairs = list(zip(seen[::2], seen[1::2], strict=True))
        if not pairs:
            return []
        await self._registry.refresh()
        live = {_consumer(one.name, one.fence) for one in self._registry.live} | {self._me}
        claimed: list[Claimed] = []
        for entry, holder in pairs:
            if holder in live:
                continue
            found = await self._state.run_script(_CLAIM, [_STREAM], [entry, holder, self._me])
            if found:
                task_id, run, run_now = found
                self._held[task_id] = _Hold(entry, run_now, "")
                self._handed_over.discard(task_id)
                claimed.append(Claimed(task_id, run == run_now))
        return claimed

    def keep_restart_data(self, task_id: str, text: str) -> None:
        """What goes on with claimed work, read from the shared state."""
        hold = self._held[task_id]
        self._held[task_id] = _Hold(hold.entry, hold.run, text)

    async def _use_fence(self) -> None:
        if not self._held:
            self._fence = self._registry.me.fence
        await self.renew()

    def _note_loss(self) -> None:
        self._stood_still = self._stood_still or self._registry.is_fenced

    @property
    def _me(self) -> str:
        return _consumer(self._registry.me.name, self._fence)


def restart_key(task_id: str) -> str:
    """Where it is kept what another replica needs to go on."""
    return f"task:{task_id}:again"


def _consumer(name: str, fence: int) -> str:
    return f"{name}:{fence}"
