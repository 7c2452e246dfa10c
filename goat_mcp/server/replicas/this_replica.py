"""This server as one of several: its entry among the replicas, what it takes from them, and what it passes on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from typing import Any, Protocol

import anyio
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.version import __version__
from goat_mcp.server.replicas.gate import HopGate, HopPrincipals
from goat_mcp.server.replicas.owner_routing import Leaving, OwnerRouting
from goat_mcp.server.replicas.relay import Relay
from goat_mcp.server.replicas.requests_in_progress import RequestsInProgress
from goat_mcp.state.replicas.lease import Scripts
from goat_mcp.state.replicas.options import ReplicaOptions
from goat_mcp.state.replicas.registry import ReplicaRegistry
from goat_mcp.state.replicas.replica import Replica, default_name
from goat_mcp.web.hops.client import HopClient
from goat_mcp.web.hops.signature import HopChecks, HopKeys

GOODBYE_S = 1.0


class Warn(Protocol):
    """Writes a line to the process's log."""

    def __call__(self, event: str, **fields: Any) -> None: ...


class ThisReplica:
    """`keys` are the secrets that all replicas have, the one to sign with first. `url` is where this process listens,
    for those who know no better one; empty if nobody else can connect there.

    Raises `ToolError(CONFIG)` if the others could not reach it.
    """

    def __init__(
        self, state: Scripts, keys: list[str], options: ReplicaOptions, *, url: str, port: int, warn: Warn
    ) -> None:
        url = options.url or url
        if not url:
            raise ToolError(
                ErrorCode.CONFIG,
                "state.url is set, but no other replica can connect to a Unix socket",
                "Listen at HOST:PORT, or set replica.url to where other replicas reach this one.",
            )
        secrets = tuple(key.encode() for key in keys)
        me = Replica(options.name or default_name(port), url, __version__, boot=token_hex(8))
        self.registry = ReplicaRegistry(state, me, secrets, options.lease_s, warn)
        self.hops = HopClient(hop_keys := HopKeys(*secrets), lambda: self.registry.me)
        self.apps: dict[str, ASGIApp] = {}
        """What is served to other replicas, by the beginning of its path."""
        self.leaving = Leaving()
        self.in_progress = RequestsInProgress()
        self._keys = hop_keys
        self._checks = HopChecks(self._identity)
        self._warn = warn

    @property
    def name(self) -> str:
        return self.registry.me.name

    def routing(self, replica_of_state: Callable[[str], str], *, needs_token: bool) -> Middleware:
        """Behind the reading of the body, in front of the sessions."""
        return Middleware(
            OwnerRouting,
            relay=Relay(self.registry, self.hops),
            replica_of_state=replica_of_state,
            leaving=self.leaving,
            in_progress=self.in_progress,
            needs_token=needs_token,
        )

    def gate(
        self, app: ASGIApp, apps: Mapping[str, ASGIApp], principals: HopPrincipals | None, max_bytes: int
    ) -> ASGIApp:
        """In front of `app`: takes what other replicas send to one of the `apps`."""
        self.apps.update(apps)
        return HopGate(app, self.apps, self._keys, self._checks, max_bytes, self._refused, principals)

    @asynccontextmanager
    async def registered(self) -> AsyncGenerator[None]:
        """Be one of the replicas inside. Without the shared state it goes on trying.

        Raises `ToolError(CONFIG)` if another live replica has its name.
        """
        try:
            await self.registry.register()
        except ToolError as problem:
            if problem.code is ErrorCode.CONFIG:
                raise
            self._warn("this replica is not registered yet", problem=str(problem))
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self.registry.run)
                yield
                group.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(GOODBYE_S, shield=True):
                await self.hops.close()
                with suppress(ToolError):  # its lease runs out
                    await self.registry.release()

    async def leave(self) -> None:
        """From now on the other replicas get what is new."""
        self.leaving.has_begun = True
        try:
            await self.registry.leave()
        except ToolError as problem:
            self._warn("the other replicas cannot be told that this one leaves", problem=str(problem))

    async def finish(self) -> None:
        """Begin nothing any more, and wait for what has begun."""
        self.leaving.is_over = True
        await self.in_progress.none()

    def on_standing_still(self, then: Callable[[], object]) -> None:
        """Call `then` once this process has stood still so long that others have given up what it held."""
        self.registry.on_lost(lambda: self.registry.is_fenced and then())

    @property
    def why_unready(self) -> str:
        return "" if self.registry.is_registered else "unregistered"

    def _identity(self) -> tuple[str, int]:
        # After it stood still, it is nobody until it has registered again: who sent what came meanwhile has given up.
        return self.name, 0 if self.registry.is_fenced else self.registry.me.fence

    def _refused(self, why: str) -> None:
        self._warn("a request that should come from a replica was refused", reason=why)
