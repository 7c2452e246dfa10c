"""A plan that is shown in its client waits in the user's queue, too: whoever decides first counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from goat_mcp.calls.approvals.asking import decision_of, first_of
from goat_mcp.calls.approvals.plan_request import plan_request
from goat_mcp.calls.approvals.record import Approval, DecidedBefore, Verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form
from goat_mcp.state.plans import Plan


@dataclass(frozen=True)
class PlanQueue:
    """`shown` makes visible what hides in a text, and takes secrets out."""

    store: ApprovalStore
    scope_id: str
    shown: Callable[[str], str]

    async def open(self, plan: Plan, text: str, ctx: ToolContext) -> Approval:
        """The record of a plan that was just presented. Somebody may have decided already."""
        request = plan_request(plan, text, self.scope_id, self.shown, ctx.client_name)
        try:
            return await anyio.to_thread.run_sync(self.store.open, request, plan.presented_at_s)
        except DecidedBefore as before:
            return before.approval

    async def ask(self, waiting: Approval, form: Form, ctx: ToolContext) -> tuple[Answer | None, Approval | None]:
        """Show the form until somebody answers it, or decides elsewhere: then it is withdrawn."""
        answer, ended = await first_of(partial(ctx.ask, form), partial(decision_of, self.store, waiting.id))
        return answer, ended if ended is not None and ended.is_decided else None

    async def decide(self, waiting: Approval, verdict: Verdict, ctx: ToolContext) -> Approval | None:
        """Record what the person said in the form. The record if somebody else was first; that decision counts."""
        by = f"form in {ctx.client_name or 'the client'}"
        try:
            await anyio.to_thread.run_sync(self.store.decide, waiting.id, verdict, by)
        except DecidedBefore as before:
            return before.approval if before.approval.is_decided else None
        return None

    async def finish(self, id: str) -> None:
        """What was decided is done."""
        await anyio.to_thread.run_sync(self.store.finish, id)
