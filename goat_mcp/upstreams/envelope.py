"""The one place where `_meta` changes hops (REL-5): reserved keys are rebuilt for each side, all others pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from goat_mcp.core.calling_client import CallingClient
from goat_mcp.core.gateway_chain import HOPS_KEY, INSTANCE_KEY, hops_in
from goat_mcp.core.version import __version__

RESERVED_PREFIX = "io.modelcontextprotocol/"
STATELESS_VERSION = "2026-07-28"
CLIENT_INFO = {"name": "goat-mcp", "version": __version__}
TASKS: Mapping[str, Any] = {"io.modelcontextprotocol/tasks": {}}
"""What a request declares whose answer may be a task (SEP-2663)."""
NO_EXTENSIONS: Mapping[str, Any] = {}

_HOP_META_KEYS = frozenset({"progressToken", "progress_token", HOPS_KEY, INSTANCE_KEY})
_HOP_RESULT_KEYS = frozenset({"resultType", "ttlMs", "cacheScope", "nextCursor"})


def passing_meta(meta: object) -> dict[str, Any]:
    """The keys of a `_meta` that belong to the two ends rather than to a hop."""
    if not isinstance(meta, Mapping):
        return {}
    return {
        key: value
        for key, value in cast("Mapping[str, Any]", meta).items()
        if not key.startswith(RESERVED_PREFIX) and key not in _HOP_META_KEYS
    }


def stamp_request(
    params: Mapping[str, Any],
    *,
    stateless: bool,
    capabilities: Mapping[str, Any] | None = None,
    log_level: str = "",
    instance: str = "",
    is_gateway: bool = False,
) -> dict[str, Any]:
    """`params` as the upstream must see them: passing keys, and in the stateless era who is asking.

    `capabilities`: what we relay for the client behind this request, and no more (ERA-3). `instance` is our own id
    among gateways, which a gateway is told, and whoever gets what another gateway began.
    """
    given = params.get("_meta")
    meta, hops = (passing_meta(given), hops_in(given)) if given else ({}, ())
    if instance and (is_gateway or hops):
        meta[HOPS_KEY] = [*hops, instance]
    if stateless:
        meta[f"{RESERVED_PREFIX}protocolVersion"] = STATELESS_VERSION
        meta[f"{RESERVED_PREFIX}clientInfo"] = CLIENT_INFO
        meta[f"{RESERVED_PREFIX}clientCapabilities"] = dict(capabilities or {})
        if log_level:
            meta[f"{RESERVED_PREFIX}logLevel"] = log_level
    stamped = dict(params)
    if meta:
        stamped["_meta"] = meta
    else:
        stamped.pop("_meta", None)
    return stamped


WHY_CANCELLED = "the client cancelled it or its time is over"


def cancelled_params(request_id: int, client: CallingClient | None, otherwise: str = WHY_CANCELLED) -> dict[str, Any]:
    """The params of `notifications/cancelled` for the upstream: with what the client said as it cancelled its own
    request, if that is why."""
    said: Mapping[str, Any] = client.cancellation if client is not None else {}
    params: dict[str, Any] = {"requestId": request_id, "reason": said.get("reason") or otherwise}
    if meta := passing_meta(said.get("_meta")):
        params["_meta"] = meta
    return params


def strip_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """An upstream's result without the members that belong to the hop between it and us."""
    kept = {key: value for key, value in result.items() if key not in _HOP_RESULT_KEYS}
    if "_meta" in kept:
        kept["_meta"] = passing_meta(kept["_meta"])
        if not kept["_meta"]:
            del kept["_meta"]
    return kept
