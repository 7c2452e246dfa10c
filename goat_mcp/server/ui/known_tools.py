"""All tools of a gateway, as `goat-mcp list` has them; counted once as long as nothing changes."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.gateway.catalog_tools import CatalogTool, catalog_tools
from goat_mcp.gateway.gateway import Gateway


class KnownTools:
    def __init__(self) -> None:
        self._mark: object = None
        self._tools: Sequence[CatalogTool] = ()

    def of(self, gateway: Gateway) -> Sequence[CatalogTool]:
        """Those that are off, too."""
        mark = (id(gateway), gateway.catalog.generation, tuple(config.name for config in gateway.upstreams.configs))
        if mark != self._mark:
            tools = catalog_tools(gateway, with_off=True)
            for tool in tools:
                _ = tool.tokens  # counted here, not while a page is made
            self._mark, self._tools = mark, tools
        return self._tools
