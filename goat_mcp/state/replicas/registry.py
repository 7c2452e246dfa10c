"""Which replicas are alive: each keeps an entry in the shared state, which it renews every few seconds.

Every replica keeps a copy of all entries, as old as its last renewal: no request waits for the shared state, but one
that names a replica that the copy does not have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.replicas.lease import Lease, Scripts, elapsed_s, read_holder
from goat_mcp.state.replicas.replica import Replica
from goat_mcp.state.replicas.stall import StallDetector

RENEWALS_IN_A_LEASE = 3
_NAMES, _ENTRY, _FENCE = "replicas:names", "replicas:entry:", "replicas:fence"
_READ = """
redis.call('SADD', KEYS[1], ARGV[1])
local found = {}
for _, name in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local entry = redis.call('GET', KEYS[2] .. name)
  if entry then
    found[#found + 1] = name
    found[#found + 1] = entry
  elseif name ~= ARGV[1] then
    redis.call('SREM', KEYS[1], name)
  end
end
return found
"""


class Warn(Protocol):
    """Writes a line to the process's log."""

    def __call__(self, event: str, **fields: Any) -> None: ...


class ReplicaRegistry:
    """This process's entry, and its copy of all others. `keys`: the first one signs entries, all are believed."""

    def __init__(
        self,
        state: Scripts,
        me: Replica,
        keys: tuple[bytes, ...],
        lease_s: float,
        warn: Warn,
        *,
        clock: Callable[[], float] = elapsed_s,
    ) -> None:
        self.me = me
        self.lease_s = lease_s
        self._state = state
        self._keys = keys
        self._warn = warn
        self._lease = Lease(state, _ENTRY + me.name, _FENCE, lease_s, clock=clock)
        self._stall = StallDetector(lease_s / RENEWALS_IN_A_LEASE, lambda: self._lease.is_held, clock)
        self._live: dict[str, Replica] = {}
        self._gone: dict[tuple[str, str], anyio.Event] = {}
        self._clock = clock
        self._entries_lost_until_s = float("-inf")
        self._reading = anyio.Lock()
        self._next_reading: asyncio.Task[None] | None = None
        self._lost: list[Callable[[], object]] = []
        self._problem = ""
        self.is_registered = False
        """Whether it has been, and nobody else has its name now. An outage of the shared state makes no replica
        unready."""

    @property
    def is_held(self) -> bool:
        """Whether the others take this replica for alive. False also while the shared state cannot be reached."""
        return self._lease.is_held

    @property
    def is_fenced(self) -> bool:
        """Whether this process stood still so long that others may have taken over, and has not registered anew."""
        return self._stall.is_stalled

    @property
    def live(self) -> tuple[Replica, ...]:
        """All, with this one, by name; as of the last time that the shared state answered."""
        return tuple(self._live[name] for name in sorted(self._live))

    def on_lost(self, then: Callable[[], object]) -> None:
        """Call `then` when the others may have taken this replica for dead: what it owned may be somebody else's now.

        `is_fenced` says whether it stood still; else the shared state was away, or has lost what was in it."""
        self._lost.append(then)

    async def register(self) -> None:
        """Take the name. Raises `ToolError(CONFIG)` if another live replica has it, `ToolError(IO)` without the
        shared state."""
        entry = self.me.entry(self._keys[0])
        instead_of = 0
        with anyio.move_on_after(2 * self.lease_s):
            while (holder := await self._lease.acquire(entry, instead_of=instead_of)) is not None:
                other = Replica.read(*holder, self._keys)
                if other is not None and other.url == self.me.url:
                    instead_of = other.fence  # this process listens at its address, so it is gone
                    continue
                await anyio.sleep(self.lease_s / RENEWALS_IN_A_LEASE)
        if not self._lease.fence:
            raise ToolError(
                ErrorCode.CONFIG,
                f"another live replica has the name {self.me.name!r}",
                "Give each replica its own replica.name.",
            )
        self.me = replace(self.me, fence=self._lease.fence)
        self.is_registered = True
        await self.refresh()

    async def run(self) -> None:
        """Stay registered until cancelled, whatever happens to the shared state."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._stall.run)
            await self._renew()

    async def _renew(self) -> None:
        while True:
            await anyio.sleep(self.lease_s / RENEWALS_IN_A_LEASE)
            try:
                await self._keep()
                self._problem = ""
            except ToolError as problem:
                if problem.code is ErrorCode.CONFIG:
                    self.is_registered = False
                if self._problem != str(problem):  # once for each outage
                    self._warn("this replica is not registered", problem=str(problem))
                self._problem = str(problem)

    async def _keep(self) -> None:
        is_kept = self._lease.is_held and not self.is_fenced
        if not is_kept or not await self._lease.renew(self.me.entry(self._keys[0])):
            for then in self._lost:
                then()
            # Its own entry may be there still: nobody else has had the name since.
            await self._lease.release()
            await self.register()
            self._stall.recovered()
        else:
            await self.refresh()

    async def leave(self) -> None:
        """Nothing new is to come here; the entry stays until `release`."""
        self.me = replace(self.me, is_leaving=True)
        if self._lease.fence:
            await self._lease.renew(self.me.entry(self._keys[0]))

    async def release(self) -> None:
        """This replica ends now."""
        await self._lease.release()

    async def find(self, name: str) -> Replica | None:
        """Who has that name now; None if nobody has. Raises `ToolError(IO)` if only the shared state could say."""
        if name not in self._live:
            await self.refresh()
        return self._live.get(name)

    async def refresh(self) -> None:
        """Read all entries. Callers that come during a reading share the next one. Raises `ToolError(IO)`."""
        if self._next_reading is None:
            self._next_reading = asyncio.get_running_loop().create_task(self._read_in_turn())
        await asyncio.shield(self._next_reading)

    async def _read_in_turn(self) -> None:
        async with self._reading:
            self._next_reading = None
            await self._read()

    async def _read(self) -> None:
        texts: Sequence[str] = await self._state.run_script(_READ, [_NAMES, _ENTRY], [self.me.name])
        found: dict[str, Replica] = {}
        for name, entry in zip(texts[::2], texts[1::2], strict=True):
            replica = Replica.read(*read_holder(entry), self._keys)
            if replica is not None and replica.name == name:
                found[name] = replica
        now_s = self._clock()
        if self.is_registered and self.me.name not in found:
            # The shared state has lost what was in it: each replica has a while to register anew.
            self._entries_lost_until_s = now_s + self.lease_s
        if now_s < self._entries_lost_until_s:
            found = {**self._live, **found}
        self._live = found
        for (name, boot), gone in list(self._gone.items()):
            if name not in found or found[name].boot != boot:
                gone.set()
                del self._gone[name, boot]

    async def until_gone(self, replica: Replica) -> None:
        """Return once the shared state says that this one is not alive any more."""
        current = self._live.get(replica.name)
        if current is None or current.boot != replica.boot:
            return
        await self._gone.setdefault((replica.name, replica.boot), anyio.Event()).wait()
