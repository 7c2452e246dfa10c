"""What an upstream tells without being asked, as it arrives: lists that changed, resources that were updated.

Taking a notice costs next to nothing and nothing piles up, however many come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

_LISTS = {"notifications/resources/list_changed": "resources", "notifications/prompts/list_changed": "prompts"}
_UPDATED = "notifications/resources/updated"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def _nobody(uri: str) -> None:
    """Nobody watches a resource of this connection."""


@dataclass
class Notices:
    """Of one connection. `on_updated` hears each URI at once, and must not block."""

    on_updated: Callable[[str], None] = _nobody
    acknowledged: Mapping[str, Any] | None = None
    """What the last change stream was acknowledged to tell of."""
    acknowledgement: anyio.Event = field(default_factory=anyio.Event)
    _changed: set[str] = field(default_factory=set[str])
    _came: anyio.Event = field(default_factory=anyio.Event)

    def take(self, method: str, params: Mapping[str, Any] | None) -> None:
        if (kind := _LISTS.get(method)) is not None:
            self.mark(kind)
        elif method == _UPDATED and isinstance(uri := (params or {}).get("uri"), str):
            self.on_updated(uri)
        elif method == _ACKNOWLEDGED:
            honoured = (params or {}).get("notifications")
            self.acknowledged = cast("dict[str, Any]", honoured) if isinstance(honoured, dict) else {}
            self.acknowledgement.set()

    def mark(self, *kinds: str) -> None:
        """These lists are to be read again."""
        self._changed.update(kinds)
        self._came.set()

    def changed(self) -> Set[str]:
        """The lists that changed since this was asked last."""
        changed, self._changed = self._changed, set()
        self._came = anyio.Event()
        return changed

    @property
    def is_any(self) -> bool:
        """Whether lists have changed since."""
        return bool(self._changed)

    async def wait(self) -> None:
        """Until some list has changed."""
        await self._came.wait()
