"""What a gateway behind us lists: each entry with the gateways it came through, and without those that came from us.

Without this two gateways that are each other's upstreams would list each other's tools of each other, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from goat_mcp.core.gateway_chain import HOPS_KEY, hops_in, why_cyclic
from goat_mcp.upstreams.listing.paging import Listed

_NOTHING: Mapping[str, Any] = {}


KEYS = {"resources": "uri", "resourceTemplates": "uriTemplate"}
"""By the member of a page that holds entries: what one is known by, where that is not its name."""


def take_chained(listed: Listed, member: str, *, instance: str, peer: str) -> None:
    """Set `listed.paths` and `listed.cyclic`, and leave in `listed.entries` what may be used, without its hops.

    `instance` is our id, `peer` that of the gateway that listed them in this `member` of its pages.
    """
    key = KEYS.get(member, "name")
    kept: list[Any] = []
    for raw in listed.entries:
        entry: Mapping[str, Any] = cast("Mapping[str, Any]", raw) if isinstance(raw, Mapping) else _NOTHING
        name = entry.get(key)
        path = (peer, *hops_in(entry.get("_meta")))
        if why := why_cyclic(path, instance):
            listed.cyclic.append((str(name)[:200], why))
            continue
        if isinstance(name, str):
            listed.paths[name] = path
        kept.append(_without_hops(entry) if len(path) > 1 else raw)
    listed.entries[:] = kept


def _without_hops(entry: Mapping[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in entry["_meta"].items() if key != HOPS_KEY}
    bare = {key: value for key, value in entry.items() if key != "_meta"}
    return {**bare, "_meta": meta} if meta else bare
