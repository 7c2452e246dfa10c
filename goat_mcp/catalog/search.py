"""Search over the tools of one catalog that are too many to be listed (DEF-4), by the index of `search_index.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread

from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.filter import server_of
from goat_mcp.core.context import ToolContext
from goat_mcp.core.spec import ToolSpec

if TYPE_CHECKING:  # the index is loaded at the first search
    from goat_mcp.catalog.search_index import ToolIndex

_BUILT_AT_ONCE = 100
"""Tools whose index is made in a moment. More of them are taken off the event loop."""


@dataclass(frozen=True)
class FoundTools:
    """The best of `total` that fit, of `searched` that the caller may see. `servers` are those they are of."""

    tools: Sequence[ToolSpec]
    total: int
    searched: int
    servers: Sequence[str]


class CatalogSearch:
    """What is hidden from a client, or denied to it as a whole, it does not find either (PRF-2)."""

    def __init__(self, catalog: Catalog, is_denied: Callable[[ToolSpec], bool]) -> None:
        self._catalog = catalog
        self._is_denied = is_denied
        self._building = anyio.Lock()
        self._built: WeakKeyDictionary[Catalog, tuple[int, ToolIndex]] = WeakKeyDictionary()

    async def find(self, query: str, ctx: ToolContext, *, limit: int, server: str = "") -> FoundTools:
        """The tools that `query` means, of one server if it is named."""
        catalog = self._catalog.of(ctx.rights)
        open_to_caller = [spec for spec in _searched(catalog) if self.shows(spec, ctx)]
        names = {spec.name for spec in open_to_caller if not server or server_of(spec) == server}
        index = await self._index(catalog)
        used = frozenset(catalog.most_used())
        tools, total = index.best(query, lambda spec: spec.name in names, limit, used)
        servers = tuple(dict.fromkeys(map(server_of, open_to_caller)))
        return FoundTools(tools, total, len(names), servers)

    def shows(self, spec: ToolSpec, ctx: ToolContext) -> bool:
        """Whether this caller may know more of a tool of the catalog than its name."""
        return ctx.rights.permits(spec.rule_name, spec.name) and not self._is_denied(spec)

    async def _index(self, catalog: Catalog) -> ToolIndex:
        from goat_mcp.catalog.search_index import ToolIndex

        async with self._building:  # those who ask meanwhile want the same one
            specs, generation = _searched(catalog), catalog.generation
            known = self._built.get(catalog)
            if known is None or known[0] != generation:
                if len(specs) <= _BUILT_AT_ONCE:
                    index = ToolIndex(specs)
                else:
                    index = await anyio.to_thread.run_sync(ToolIndex, specs)
                known = self._built[catalog] = (generation, index)
            return known[1]


def _searched(catalog: Catalog) -> Sequence[ToolSpec]:
    return [tool.spec for tool in catalog.searched()]
