"""When a catalog is too large to be listed whole, so that upstream tools are found by search instead (DEF-1).

What is listed then is the catalog's business, how tools are found the meta-tools'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from goat_mcp.core.token_cost import cost_more_than

CatalogMode = Literal["auto", "full", "search"]
TOKEN_BUDGET = 20_000


class DeferredListing(NamedTuple):
    """`auto` defers what costs more than the budget, `full` nothing, `search` always."""

    mode: CatalogMode = "auto"
    token_budget: int = TOKEN_BUDGET

    def wanted(self, entries: Iterable[Mapping[str, Any]], *, has_upstream_tools: bool) -> bool:
        """`entries` are those of the whole catalog, without meta-tools: what listing it would cost."""
        if self.mode != "auto":
            return self.mode == "search"
        # Our own tools are always listed: where there are no others, nothing would be saved.
        return has_upstream_tools and cost_more_than(entries, self.token_budget)
