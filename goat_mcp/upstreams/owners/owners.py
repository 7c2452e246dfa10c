"""Who owns the process of a stdio upstream among the replicas, and the way to it from here.

Who holds the lease is the owner. If nobody does, it is the first live replica of the key's rendezvous hash. This
replica's own connections and those of the others join in the same way; over HTTP the latter (`tunnel`).
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from goat_mcp.core.errors import ToolError
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.state.replicas.lease import Lease, Scripts, read_holder
from goat_mcp.state.replicas.registry import ReplicaRegistry
from goat_mcp.state.replicas.replica import Replica
from goat_mcp.upstreams.config.entry import Confine, StdioLaunch, UpstreamConfig, in_workspace
from goat_mcp.upstreams.faults import StartFailure
from goat_mcp.upstreams.owners.owned_process import OwnedProcess
from goat_mcp.upstreams.owners.process_key import ProcessKey, preferred
from goat_mcp.upstreams.owners.tunnel import NotOwner, Refused, tunnel
from goat_mcp.upstreams.sharing.broker import IDLE_S
from goat_mcp.upstreams.sharing.shared_launch import Opening, SharedLaunch, sorted_environment
from goat_mcp.upstreams.sharing.shared_process import OpenProcess, open_shared
from goat_mcp.upstreams.status import ReasonCode
from goat_mcp.upstreams.transports.stdio_transport import child_environment
from goat_mcp.web.hops.client import HopClient

_READ = "return redis.call('GET', KEYS[1])"
_FENCE = "owners:fence"
_AGAIN_S = 0.2
_FIRST_S = 5.0


@dataclass(frozen=True)
class Replicas:
    """What connects this replica with the others."""

    registry: ReplicaRegistry
    hops: HopClient
    state: Scripts


class Owners:
    """This replica's part. `entry` finds an upstream of the configuration by its part in names of tools."""

    def __init__(
        self,
        entry: Callable[[str], UpstreamConfig | None],
        *,
        guard: ProcessGuard | None,
        confine: Confine | None,
        idle_s: float = IDLE_S,
    ) -> None:
        self._entry = entry
        self._guard = guard
        self._confine = confine
        self._idle_s = idle_s
        self._owned: dict[ProcessKey, OwnedProcess] = {}
        self._taking = anyio.Lock()
        self._replicas: Replicas | None = None
        self._group: anyio.abc.TaskGroup | None = None
        self._joined = anyio.Event()

    @asynccontextmanager
    async def running(self, replicas: Replicas) -> AsyncGenerator[None]:
        """Take part while this replica is registered. At the end no process of ours is left, and no lease."""
        async with anyio.create_task_group() as self._group:
            self._replicas = replicas
            self._joined.set()
            try:
                yield
            finally:
                self._joined = anyio.Event()
                self._group.cancel_scope.cancel()

    @asynccontextmanager
    async def connection(self, key: ProcessKey, opening: Opening, within_s: float) -> AsyncGenerator[socket.socket]:
        """A connection to the process, wherever it runs. Raises `StartFailure` if no owner is found in time."""
        until_s = time.monotonic() + within_s
        refused: set[str] = set()
        why = "this replica is not one of several yet"
        async with AsyncExitStack() as stack:
            while True:
                owner: Replica | None = None
                try:
                    # asyncio's, for what is entered here stays open when the time-out is over. A stopped owner
                    # answers nothing: then it is asked again who owns it.
                    async with asyncio.timeout(min(self._patience_s, until_s - time.monotonic())):
                        await self._joined.wait()
                        owner = await self._owner(key, refused)
                        if owner is None:
                            why = "no live replica can own it"
                        elif (found := await self._way_to(owner, key, opening, stack)) is not None:
                            break
                except NotOwner:
                    why = f"the replica {owner.name if owner else '?'} does not own it"
                except Refused as other:
                    if owner is not None:
                        refused.add(owner.name)
                    why = str(other)
                except TimeoutError:
                    why = f"the replica {owner.name} does not answer" if owner is not None else why
                except ToolError as gone:
                    why = gone.message
                if time.monotonic() >= until_s:
                    raise StartFailure(ReasonCode.START_TIMEOUT, f"its owner was not found: {why}")
                await anyio.sleep(_AGAIN_S)
            yield found

    async def _way_to(
        self, owner: Replica, key: ProcessKey, opening: Opening, stack: AsyncExitStack
    ) -> socket.socket | None:
        replicas = self._known
        if owner.name == replicas.registry.me.name:
            owned = await self.take(key)
            return None if owned is None else await stack.enter_async_context(owned.joined(opening, os.getpid()))
        return await stack.enter_async_context(tunnel(replicas.hops, replicas.registry, owner, key, opening))

    @property
    def _patience_s(self) -> float:
        return self._replicas.registry.lease_s if self._replicas is not None else _FIRST_S

    @property
    def _known(self) -> Replicas:
        assert self._replicas is not None, "running() comes first"
        return self._replicas

    async def _owner(self, key: ProcessKey, refused: set[str]) -> Replica | None:
        """Raises `ToolError(IO)` if only the shared state could say."""
        registry = self._known.registry
        mine = self._owned.get(key)
        if mine is not None and mine.may_write() and not mine.is_ending:
            return registry.me
        if (holder := await self._holder(key)) is not None and holder[1] is not None:
            return holder[1]
        candidates = [one.name for one in registry.live if not one.is_leaving and one.name not in refused]
        name = preferred(key, candidates)
        return None if name is None else await registry.find(name)

    async def _holder(self, key: ProcessKey) -> tuple[int, Replica | None] | None:
        """The fencing number of who holds the lease, and the replica if it is alive. None if nobody holds it."""
        state, registry = self._known.state, self._known.registry
        text: str | None = await state.run_script(_READ, [_lease_key(key)], [])
        if text is None:
            return None
        fence, value = read_holder(text)
        name, _, number = value.rpartition(":")
        replica = await registry.find(name)
        return fence, replica if replica is not None and str(replica.fence) == number else None

    async def take(self, key: ProcessKey) -> OwnedProcess | None:
        """What this replica owns of it, the lease taken if it is free; None if another replica has it. Raises
        `Refused` if this one cannot own it, and `ToolError(IO)`."""
        registry, state = self._known.registry, self._known.state
        async with self._taking:
            owned = self._owned.get(key)
            if owned is not None and owned.is_ending:
                await owned.over.wait()
                owned = None
            if owned is not None:
                return owned
            start = self._start_of(key)
            if not registry.is_held:
                return None
            holder = f"{registry.me.name}:{registry.me.fence}"
            lease = Lease(state, _lease_key(key), _FENCE, registry.lease_s)
            held = await self._holder(key)
            gone = held[0] if held is not None and (held[1] is None or held[1].name == registry.me.name) else 0
            if await lease.acquire(holder, instead_of=gone) is not None:
                return None
            owned = self._owned[key] = OwnedProcess(key, lease, registry, holder, start, self._idle_s)
            assert self._group is not None
            await self._group.start(self._keep, owned)
            return owned

    async def _keep(self, owned: OwnedProcess, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        try:
            await owned.run(task_status=task_status)
        finally:
            del self._owned[owned.key]

    def opening(self, key: ProcessKey, facts: Mapping[str, Any]) -> Opening:
        """What a session that comes from another replica says of itself, with the launch as it is here. Raises
        `Refused`, `StartFailure`, and `ValueError`."""
        target = in_workspace(self._target(key), Path(key.root) if key.root else None)
        assert isinstance(target, StdioLaunch)
        leaves = tuple(int(pid) for pid in facts.get("leaves", ()))
        return Opening(launch_of(target, key), str(facts["control"]), bool(facts["asks"]), leaves)

    def _target(self, key: ProcessKey) -> StdioLaunch:
        config = self._entry(key.server)
        target = config.target if config is not None else None
        root = Path(key.root) if key.root else None
        if not isinstance(target, StdioLaunch) or ProcessKey.of(key.server, target, root, key.account) != key:
            raise Refused(f"the entry of {key.server} is another one at the replica {self._known.registry.me.name}")
        return target

    def _start_of(self, key: ProcessKey) -> OpenProcess:
        sandbox = self._target(key).sandbox
        return lambda launch: open_shared(launch, self._guard, sandbox, self._confine)


def launch_of(target: StdioLaunch, key: ProcessKey) -> SharedLaunch:
    """What this replica starts, its workspace filled in."""
    environment = sorted_environment(child_environment(target.env))
    return SharedLaunch(target.command, target.args, environment, target.cwd or "", key.account)


def _lease_key(key: ProcessKey) -> str:
    return f"owner:{key.name}"
