"""Plans of plan mode that wait for the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio.to_thread

from goat_mcp.calls.approvals.plan_request import plan_request, plan_subject
from goat_mcp.calls.approvals.record import Approval, Kind, Request, Verdict
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.plans import Plan, PlanStatus, PlanStore, all_plans, find_plan


class PlanSource:
    kind = Kind.PLAN

    def __init__(self, state: StateDirectory, shown: Callable[[str], str]) -> None:
        self._state = state
        self._shown = shown

    def waiting(self) -> Sequence[Request]:
        plans = all_plans(self._state)
        return [self.request(store, plan) for store, plan in plans if plan.status is PlanStatus.WAITING]

    def request(self, store: PlanStore, plan: Plan) -> Request:
        return plan_request(plan, store.text(plan), store.scope, self._shown)

    async def approve(self, approval: Approval, verdict: Verdict) -> str:
        """The session that presented it leaves plan mode with its next call."""
        name = await anyio.to_thread.run_sync(self._decide, approval.request, PlanStatus.APPROVED, "")
        return f"plan {name}: approved; its session leaves plan mode with its next call"

    async def deny(self, approval: Approval, verdict: Verdict) -> str:
        name = await anyio.to_thread.run_sync(self._decide, approval.request, PlanStatus.REJECTED, verdict.reason)
        return f"plan {name}: rejected; its session keeps planning"

    def _decide(self, request: Request, status: PlanStatus, feedback: str) -> str:
        name = request.subject.rpartition(":")[0]
        found = find_plan(self._state, name)
        if found is None:
            raise ToolError(ErrorCode.NOT_FOUND, f"no plan {name!r}", "See goat-mcp plan list.")
        store, plan = found
        if plan_subject(name, store.text(plan)) != request.subject:
            raise ToolError(
                ErrorCode.STALE, f"the text of plan {name} has changed since it was shown", "See goat-mcp approvals."
            )
        store.decide(plan, status, feedback=feedback)
        return name
