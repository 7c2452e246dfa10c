"""`goat://plans` and `goat://plans/NAME`: the reader's plans in the workspace, and what was decided about them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import Reading, json_entry, json_reading, last_part, template
from goat_mcp.state.plans import Plan, PlanStore

PLANS_URI = "goat://plans"


class PlanResources:
    entries = (json_entry(PLANS_URI, "plans", "Your plans in this workspace, newest first, and their status"),)
    templates = (template(f"{PLANS_URI}/{{name}}", "plan", "The text of one plan", "text/markdown"),)

    def __init__(self, plans: PlanStore) -> None:
        self._plans = plans

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        if uri == PLANS_URI:
            plans = await anyio.to_thread.run_sync(self._plans.newest_first, ctx.principal)
            return json_reading({"plans": [_described(plan) for plan in plans]})
        name = last_part(uri, f"{PLANS_URI}/")
        return None if name is None else await anyio.to_thread.run_sync(self._text, name, ctx.principal)

    def _text(self, name: str, principal: str) -> Reading | None:
        plan = self._plans.find(name, principal)
        return None if plan is None else Reading(self._plans.text(plan), "text/markdown")


def _described(plan: Plan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "uri": f"{PLANS_URI}/{plan.name}",
        "status": str(plan.status),
        "created_at": datetime.fromtimestamp(plan.presented_at_s, UTC).isoformat(timespec="seconds"),
        "file_path": plan.file_path,
        "feedback": plan.feedback,
    }
