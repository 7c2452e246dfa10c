"""What clients say as they cancel a request: the reason, and the `_meta` of the notice, for the upstream behind it.

The SDK only cancels. So each way in notes the notice, before it takes effect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import mcp_types as types
from mcp.shared.dispatcher import as_request_id, coerce_request_id

from goat_mcp.server.client_channel import Context

CANCELLED = "notifications/cancelled"
MAX_KEPT = 256
MAX_REASON_CHARS = 1_000
MAX_META_CHARS = 4_000
_SESSION_ID = "mcp-session-id"
_NOTHING: Mapping[str, Any] = {}


def cancellation_of(params: object) -> Mapping[str, Any]:
    """What of a notice is for whoever works on the request: `reason`, cut, and `_meta`, unless that is large."""
    if not isinstance(params, Mapping):
        return _NOTHING
    about = cast("Mapping[str, Any]", params)
    said: dict[str, Any] = {}
    if isinstance(reason := about.get("reason"), str) and reason:
        said["reason"] = reason[:MAX_REASON_CHARS]
    if isinstance(meta := about.get("_meta"), dict) and meta:
        try:
            is_small = len(json.dumps(meta)) <= MAX_META_CHARS
        except RecursionError:
            is_small = False
        if is_small:
            said["_meta"] = meta
    return said


class Cancellations:
    """Of one server, by session and request. The oldest are forgotten: most requests that are cancelled have ended."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, types.RequestId], Mapping[str, Any]] = {}

    def note(self, session_id: str, params: object) -> None:
        """A client cancels a request. `session_id` is empty over stdio."""
        about: Any = cast("Mapping[str, Any]", params).get("requestId") if isinstance(params, Mapping) else None
        request_id = as_request_id(about)
        if request_id is None:
            return
        key = (session_id, coerce_request_id(request_id))
        self._said.pop(key, None)
        if said := cancellation_of(cast("object", params)):
            self._said[key] = said
        if len(self._said) > MAX_KEPT:
            del self._said[next(iter(self._said))]

    def of(self, ctx: Context) -> Mapping[str, Any]:
        """What the client said of this request; empty if it has not cancelled it, or said nothing."""
        if ctx.request_id is None:
            return _NOTHING
        session_id = "" if ctx.request is None else ctx.request.headers.get(_SESSION_ID, "")
        return self._said.get((session_id, coerce_request_id(ctx.request_id)), _NOTHING)
