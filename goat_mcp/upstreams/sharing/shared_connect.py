"""Which entries are shared (`share`, `catalog.share`), and how their connections are made. Loads little: the way to the
broker is loaded by the first connection that takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from goat_mcp.core.rights import OWNERS
from goat_mcp.upstreams.config.entry import RootOf, ShareSetting, StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.envelope import STATELESS_VERSION
from goat_mcp.upstreams.sharing.broker_start import StartBroker, start_broker

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.transports.connection import Connection

Connect = Callable[..., "AbstractAsyncContextManager[Connection]"]


class OwnedAmongReplicas(Protocol):
    """The way to a process that one of several replicas owns."""

    def share(
        self,
        config: UpstreamConfig,
        root_of: RootOf,
        account: Callable[[], str],
        asks: Callable[[], bool],
        learn_asks: Callable[[], None],
        leaves: tuple[int, ...],
    ) -> Callable[..., AbstractAsyncContextManager[Any]]:
        """`connect.OpenShared` of one connection."""
        ...


@dataclass(frozen=True)
class Sharing:
    """What holds for all upstreams. `start` starts the broker, `leaves` is as in `Opening`. `owned`: with several
    replicas, one of them has the process for all."""

    setting: ShareSetting = "named"
    start: StartBroker = start_broker
    leaves: tuple[int, ...] = ()
    owned: OwnedAmongReplicas | None = None

    def connect(
        self,
        connect: Connect,
        config: UpstreamConfig,
        root_of: RootOf,
        account: Callable[[], str],
        *,
        asks: Callable[[], bool],
        learn_asks: Callable[[], None],
    ) -> Connect:
        """`connect`, over a shared process if this upstream is shared. The others are as in `Share`."""
        target = config.target
        owned = self.owned
        if owned is not None and isinstance(target, StdioLaunch) and _has_owner(config):

            def connected_to_owner(*args: Any, **options: Any) -> AbstractAsyncContextManager[Connection]:
                share = owned.share(config, root_of, account, asks, learn_asks, self.leaves)
                return connect(*args, share=share, **options)

            return connected_to_owner
        is_left_out = config.share is None and (self.setting == "named" or _has_sandbox(config))
        if config.share is False or is_left_out or not isinstance(target, StdioLaunch):
            return connect

        def connected(*args: Any, known_version: str | None, **options: Any) -> AbstractAsyncContextManager[Connection]:
            if config.share is None and known_version != STATELESS_VERSION:
                return connect(*args, known_version=known_version, **options)
            from goat_mcp.upstreams.sharing.shared_transport import Share

            share = Share(account, asks, learn_asks, self.start, self.leaves)
            return connect(*args, known_version=known_version, share=share, **options)

        return connected


SHARE_NAMED = Sharing()
"""Only entries that say so are shared."""


def lazy_connect(*args: Any, **options: Any) -> AbstractAsyncContextManager[Connection]:
    """`connect`. It loads the SDK's client side with the first upstream that is wanted."""
    from goat_mcp.upstreams.transports.connect import connect

    return connect(*args, **options)


def account_of(principal: str | None) -> str:
    """Whose process a principal's is; empty for the user's own."""
    return "" if principal is None or principal in OWNERS else principal


def _has_owner(config: UpstreamConfig) -> bool:
    """Whether it is one process for all replicas. An entry that gives each session its own keeps that."""
    return config.share is not False and config.scope != "session"


def _has_sandbox(config: UpstreamConfig) -> bool:
    return isinstance(config.target, StdioLaunch) and config.target.sandbox is not None
