"""The lists of resources, templates and prompts as clients get them: ours first, then the upstreams', in pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types

from goat_mcp.catalog.offerings import Kind
from goat_mcp.core.rights import Rights
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.handlers.pages import PAGE_SIZE, Pages
from goat_mcp.server.sanitize_result import sanitized_item

if TYPE_CHECKING:  # loaded when somebody asks for a list
    from goat_mcp.catalog.resource_catalog import VisibleResources

KINDS: tuple[Kind, ...] = ("resources", "templates", "prompts")
Entries = Sequence[Mapping[str, Any]]


class ResourceLists:
    """`changed` hears of each list that clients have and that is another now. What nobody has listed is no news."""

    def __init__(self, gateway: Gateway, changed: Callable[[Kind], None], page_size: int = PAGE_SIZE) -> None:
        self._gateway = gateway
        self._changed = changed
        self._pages = {kind: Pages(kind, page_size) for kind in KINDS}
        self._lists: dict[tuple[Kind, Rights], tuple[VisibleResources, Entries]] = {}
        gateway.upstreams.offers.on_change(lambda _: self.compare())

    async def page(
        self, kind: Kind, member: str, own: Entries, params: types.PaginatedRequestParams | None, rights: Rights
    ) -> dict[str, Any]:
        """One page as an answer. Raises `MCPError` for a cursor of another list."""
        await self._gateway.upstreams.first_offers(shows=self._gateway.servers.shown(rights))
        catalog = self._gateway.item_catalogs.of(rights)
        known = self._lists.get((kind, rights))
        if known is None or known[0] is not catalog.items():
            items = catalog.items()
            known = self._lists[kind, rights] = (items, (*own, *items.list(kind)))
        entries, cursor = self._pages[kind].page(known[1], params.cursor if params is not None else None)
        answer: dict[str, Any] = {
            member: list(entries),
            "ttlMs": catalog.ttl_ms(kind),
            "cacheScope": "private",
            "resultType": "complete",
        }
        return sanitized_item(answer if cursor is None else {**answer, "nextCursor": cursor})

    def compare(self) -> None:
        """What there is, or who may see it, has changed."""
        # Whoever holds another list than what would be listed now is not known by profile: all are told.
        changed = {
            kind
            for (kind, rights), (listed, _) in self._lists.items()
            if self._gateway.item_catalogs.of(rights).items().list(kind) != listed.list(kind)
        }
        for kind in KINDS:
            if kind in changed:
                self._changed(kind)
