"""What clients have listed, and who hears that they have to list again although the registry is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from goat_mcp.catalog.catalog import Catalog
from goat_mcp.gateway.build.tools import ToolSelection

if TYPE_CHECKING:
    from goat_mcp.catalog.resource_catalog import ResourceCatalogs


class ClientLists:
    """`resources` gives the catalogs of resources; None if nobody has asked for one yet."""

    def __init__(self, tools: Catalog, resources: Callable[[], ResourceCatalogs | None]) -> None:
        self._tools = tools
        self._resources = resources
        self._listeners: list[Callable[[], None]] = []

    def on_outdated(self, listener: Callable[[], None]) -> None:
        """Call `listener` when clients have to list again."""
        self._listeners.append(listener)

    def choose(self, chosen: ToolSelection) -> None:
        """Have clients see these tools from now on."""
        self._tools.choose(chosen.filter(), chosen.profiles(), chosen.deferral())
        self.forget_resources()

    def forget_resources(self) -> None:
        """What clients may see of them has changed."""
        if (catalogs := self._resources()) is not None:
            catalogs.forget()
        self.outdated()

    def outdated(self) -> None:
        for listener in self._listeners:
            listener()
