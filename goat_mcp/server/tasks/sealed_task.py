"""The id that a client gets for a task of an upstream: all that is needed to ask there, sealed for one principal.

Nothing is kept here for it, so it holds after a reconnect, a restart and at another replica with the same keys.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Any

from mcp.server.request_state import InvalidRequestState, RequestStateCodec

from goat_mcp.core.result import UpstreamTask

PREFIX = "up."
LEAST_KEPT_S = 7 * 24 * 3600.0
"""An id holds at least so long: whether the task is still there its upstream says, which may prolong it."""
MAX_CHARS = 8_000
_KIND = "task"
_MEMBERS = ("source", "tool", "task_id", "launch")


class SealedTasks:
    """`codec` also seals the states of questions, which have other members than a task."""

    def __init__(self, codec: RequestStateCodec) -> None:
        self._codec = codec

    def seal(self, task: UpstreamTask, principal: str) -> str:
        ttl_s = (task.created.get("ttlMs") or 0) / 1000
        facts = {name: value for name, value in asdict(task).items() if name in _MEMBERS}
        claims = {"k": _KIND, "p": principal, "x": time.time() + max(ttl_s, LEAST_KEPT_S), **facts}
        return PREFIX + self._codec.seal(json.dumps(claims).encode())

    def open(self, wire_id: str, principal: str) -> UpstreamTask | None:
        """None for an id that is not ours, is another's, or has expired."""
        if not wire_id.startswith(PREFIX) or len(wire_id) > MAX_CHARS:
            return None
        try:
            claims: dict[str, Any] = json.loads(self._codec.unseal(wire_id.removeprefix(PREFIX)))
            if claims["k"] != _KIND or claims["p"] != principal or not time.time() < claims["x"]:
                return None
            source, tool, task_id, launch = (str(claims[name]) for name in _MEMBERS)
            return UpstreamTask(source, tool, task_id, launch)
        except (InvalidRequestState, ValueError, KeyError, TypeError):
            return None
