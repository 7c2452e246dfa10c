"""A paginated list of an upstream, read within bounds (AGG-4): pages, entries, bytes, and no cursor twice.

If the upstream is a gateway too, each entry has the gateways it came through, and those that came from us are left out:
without that two gateways that are each other's upstreams would list each other's tools of each other, and so on.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_core import to_json

from goat_mcp.core.gateway_chain import HOPS_KEY, hops_in, why_cyclic
from goat_mcp.upstreams.faults import Fault, FaultKind, TransportFault

MAX_PAGES = 100
MAX_ENTRIES = 10_000
MAX_LIST_BYTES = 16 * 1024 * 1024
MAX_TTL_MS = 24 * 3_600_000


@dataclass
class Listed:
    """What a list has brought so far. `truncated` names the cap that ended it early; empty if none did.

    `ttl_ms` is the shortest time that one of its pages stays fresh, as the upstream said; 0 where one did not say.
    """

    entries: list[Any] = field(default_factory=list[Any])
    truncated: str = ""
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By name, the gateways that an entry came through, where a gateway listed it."""
    cyclic: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Entries left out since they came from us, each with the reason."""
    ttl_ms: int | None = None


async def drain(ask: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]], member: str, listed: Listed) -> None:
    """Ask for page after page and put what is in `member` of each into `listed`, where it stays if a page fails.

    Raises what `ask` raises, and `TransportFault(MALFORMED)` for a page without such a list.
    """
    seen: set[str] = set()
    cursor: str | None = None
    taken_bytes = 0
    for _ in range(MAX_PAGES):
        page = await ask({} if cursor is None else {"cursor": cursor})
        entries = page.get(member)
        listed.ttl_ms = min(_ttl_ms(page), MAX_TTL_MS if listed.ttl_ms is None else listed.ttl_ms)
        if not isinstance(entries, list):
            raise TransportFault(Fault(FaultKind.MALFORMED, f"a page of its list has no {member}"))
        taken_bytes += _size(entries)
        if taken_bytes > MAX_LIST_BYTES:
            listed.truncated = f"more than {MAX_LIST_BYTES} bytes"
            return
        listed.entries.extend(cast("list[Any]", entries))
        if len(listed.entries) > MAX_ENTRIES:
            del listed.entries[MAX_ENTRIES:]
            listed.truncated = f"more than {MAX_ENTRIES} {member}"
            return
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return
        if cursor in seen:
            listed.truncated = "a cursor came twice"
            return
        seen.add(cursor)
    listed.truncated = f"more than {MAX_PAGES} pages"


def _ttl_ms(page: Mapping[str, Any]) -> int:
    ttl = page.get("ttlMs")
    return max(0, ttl) if isinstance(ttl, int) and not isinstance(ttl, bool) else 0


def _size(page: Any) -> int:
    try:
        return len(to_json(page))
    except ValueError:
        # A lone surrogate, which only the slow encoder takes.
        return len(json.dumps(page))


_NOTHING: Mapping[str, Any] = {}


KEYS = {"resources": "uri", "resourceTemplates": "uriTemplate", "skills": "uri"}
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
