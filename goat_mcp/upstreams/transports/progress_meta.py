"""The `_meta` of an upstream's progress reports (REL-5). The SDK's dispatcher hands on numbers and words only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mcp.shared.dispatcher import ProgressFnT, coerce_request_id

from goat_mcp.files.documents.visible_text import make_json_visible
from goat_mcp.upstreams.envelope import passing_meta

MAX_WAITING = 64
"""Reports of one request whose `_meta` waits for the dispatcher; of more than that it is dropped."""


class OnProgress(Protocol):
    """Takes a report with its `_meta`; None where that says nothing."""

    async def __call__(
        self, progress: float, total: float | None, message: str | None, meta: Mapping[str, Any] | None = None, /
    ) -> None: ...


class ProgressMeta:
    """Of one connection. The dispatcher begins to hand on a report before the notice is seen whole, and ends after."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[float, Mapping[str, Any]]] = {}

    def joined(self, request_id: int, on_progress: OnProgress) -> ProgressFnT:
        """For the dispatcher: what hands on its reports of this request, each with its `_meta`."""
        waiting = self._waiting[request_id] = {}

        async def report(progress: float, total: float | None, message: str | None) -> None:
            await on_progress(progress, total, message, waiting.pop(progress, None))

        return report

    def take(self, params: Mapping[str, Any]) -> None:
        """A report has come. Of two with the same progress only the first is of interest to a client."""
        if not self._waiting or not (meta := passing_meta(params.get("_meta"))):
            return
        token, progress = params.get("progressToken"), params.get("progress")
        request_id = coerce_request_id(token) if isinstance(token, str | int) else None
        waiting = self._waiting.get(request_id) if isinstance(request_id, int) else None
        if waiting is None or isinstance(progress, bool) or not isinstance(progress, int | float):
            return
        try:
            shown: Mapping[str, Any] = make_json_visible(meta)
        except RecursionError:
            return
        if len(waiting) < MAX_WAITING:
            waiting.setdefault(float(progress), shown)

    def forget(self, request_id: int) -> None:
        """The request has its answer."""
        self._waiting.pop(request_id, None)
