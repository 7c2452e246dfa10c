"""Announces what other processes make of a workspace's plans: files and records that differ from those seen last."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import anyio.to_thread

from goat_mcp.core.resources import Announcements
from goat_mcp.state.plan_resources import PLANS_URI
from goat_mcp.state.plans import PlanMark, PlanStore


class PlanChanges:
    """Remembers how the plans were when it looked last, or when this process announced one."""

    def __init__(self, plans: PlanStore, announcements: Announcements) -> None:
        self._plans = plans
        self._announcements = announcements
        self._seen: dict[str, Mapping[str, PlanMark]] = {}
        """By principal."""
        announcements.listen(self._announced, lambda uri, principal: False)

    async def look(self, principals: Collection[str]) -> None:
        """Each of them hears of its own plans. The first look only remembers."""
        for principal in principals:
            before = self._seen.get(principal)
            marks = await anyio.to_thread.run_sync(self._plans.marks, principal)
            if self._seen.get(principal) is not before:
                continue  # one of our own came meanwhile; the next look sees both
            self._seen[principal] = marks
            changed = {name for name, _ in before.items() ^ marks.items()} if before is not None else ()
            for name in sorted(changed):
                self._announcements.changed(f"{PLANS_URI}/{name}", principal)
            if changed:
                self._announcements.changed(PLANS_URI, principal)

    def _announced(self, uri: str, principal: str | None) -> None:
        name = uri.removeprefix(f"{PLANS_URI}/")
        if principal in self._seen and name != uri:
            self._seen[principal] = {**self._seen[principal], name: self._plans.mark(name)}
