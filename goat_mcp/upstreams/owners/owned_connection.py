"""An upstream's connection to a process that one of the replicas owns: the pair of streams of `stdio_transport`."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from goat_mcp.upstreams.config.entry import RootOf, StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.faults import StartFailure
from goat_mcp.upstreams.owners.owners import Owners, launch_of
from goat_mcp.upstreams.owners.process_key import ProcessKey
from goat_mcp.upstreams.sharing.shared_launch import Opening
from goat_mcp.upstreams.sharing.shared_transport import session_pipes
from goat_mcp.upstreams.status import ReasonCode
from goat_mcp.upstreams.transports.child_pipes import Outbox, StdioTransport
from goat_mcp.upstreams.transports.frame_inbox import Inbox


@dataclass(frozen=True)
class OwnedConnection:
    """Connections of one upstream. All but `owners` is as in `Share`."""

    owners: Owners
    config: UpstreamConfig
    root_of: RootOf
    account: Callable[[], str]
    asks: Callable[[], bool]
    learn_asks: Callable[[], None]
    leaves: tuple[int, ...]

    @asynccontextmanager
    async def __call__(
        self, target: StdioLaunch, start_timeout_s: float
    ) -> AsyncGenerator[tuple[StdioTransport, Inbox, Outbox]]:
        """Use the process meanwhile. Raises `StartFailure`. `target` has its workspace filled in."""
        entry = self.config.target
        assert isinstance(entry, StdioLaunch)
        key = ProcessKey.of(self.config.server, entry, self.root_of(), self.account())
        opening = Opening(launch_of(target, key), f"goat-mcp/{secrets.token_hex(16)}", self.asks(), self.leaves)
        async with self.owners.connection(key, opening, start_timeout_s) as connection:
            pipes = await session_pipes(connection, opening, self.learn_asks)
            try:
                await pipes.until_opened(start_timeout_s)
                if pipes.has_lost_broker:
                    raise StartFailure(ReasonCode.START_FAILED, "the replica that owns it has ended")
                yield pipes.link, pipes.inbox, Outbox(pipes, pipes.link)
            finally:
                pipes.abort()
