"""What all upstreams of a process share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from goat_mcp.catalog.offerings import Offerings
from goat_mcp.catalog.own_lists import OwnLists
from goat_mcp.catalog.registry import Registry
from goat_mcp.catalog.resource_catalog import UriOwnership
from goat_mcp.core.calling_client import RootsOf
from goat_mcp.core.resources import UpstreamUpdate
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.cache.warm_catalog import WarmCatalog
from goat_mcp.upstreams.pinning.pins import Pinning
from goat_mcp.upstreams.retry_policy import SupervisorLimits
from goat_mcp.upstreams.sharing.shared_connect import Sharing
from goat_mcp.upstreams.supervisor import Connect


@dataclass(frozen=True, kw_only=True)
class UpstreamServices:
    """`uris` knows what results point to. `roots` are what upstreams hear of as the client's. `on_change` hears that
    something in `status` changed, `on_updated` the watched resources that were updated; neither may block.
    """

    registry: Registry
    offers: Offerings
    uris: UriOwnership
    warm: WarmCatalog
    pins: Pinning
    telemetry: Telemetry
    limits: SupervisorLimits
    connect: Connect
    sharing: Sharing
    roots: RootsOf
    own_lists: OwnLists
    on_change: Callable[[], None]
    on_updated: Callable[[UpstreamUpdate], None]
