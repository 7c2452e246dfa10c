"""Gateways behind gateways: who has passed a message on, and whether it has come round (CHN-2).

Each running gateway has an id of its own. One tells it when it is greeted, adds it to the hops of what it passes on,
and, to a gateway that lists, says through which others each entry came. Ids last as long as the process: two servers
of one user are never taken for one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, cast

INSTANCE_KEY = "goat-mcp/instance"
"""In the `_meta` of an answer to `initialize` or `server/discover`: the id of who answers."""
HOPS_KEY = "goat-mcp/hops"
"""In the `_meta` of a request: the gateways it has passed; of a listed entry: those it came through, nearest first."""
MAX_HOPS = 8


def new_instance() -> str:
    """An id for a gateway that starts now."""
    return secrets.token_hex(8)


def instance_in(meta: object) -> str:
    """The id in an answer; empty if no gateway sent it."""
    told: Any = cast("Mapping[str, Any]", meta).get(INSTANCE_KEY) if isinstance(meta, Mapping) else None
    return told if isinstance(told, str) and len(told) <= 64 else ""


def hops_in(meta: object) -> tuple[str, ...]:
    """The hops that a `_meta` names; what is no such list is none. Of an overlong one, enough to see that it is."""
    told: Any = cast("Mapping[str, Any]", meta).get(HOPS_KEY) if isinstance(meta, Mapping) else None
    if not isinstance(told, list):
        return ()
    return tuple(hop for hop in cast("list[Any]", told)[: MAX_HOPS + 1] if isinstance(hop, str))


def why_cyclic(hops: tuple[str, ...], instance: str) -> str:
    """Why something with these hops must not go on through the gateway `instance`; empty if it may."""
    if instance in hops:
        return "it has come round to the gateway it came from"
    return f"it has passed {MAX_HOPS} gateways" if len(hops) >= MAX_HOPS else ""
