"""The end of plan mode: the plan is saved, the user decides, and its session goes on. The model never decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from goat_mcp.calls.permissions.mode import Mode
from goat_mcp.calls.permissions.rule import BrokenRule, Rule, parse_rule
from goat_mcp.calls.permissions.session_modes import SessionModes
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.resources import Announcements
from goat_mcp.core.settings_part import SettingsPart
from goat_mcp.state.plans import Plan, PlanStatus, PlanStore, Presenter


class PlanOptions(SettingsPart):
    """Who approves a plan: `ask` the user, by form or with `goat-mcp plan`, or the `host`'s own dialog for the call."""

    approval: Literal["ask", "host"] = "ask"


@dataclass(frozen=True)
class PlanApproval:
    """Plans of one gateway. A plan that waits is remembered with its session, so that a decision finds it.

    A decision is only ever for the principal and session that presented the plan (R-HTTP-3b).
    """

    plans: PlanStore
    modes: SessionModes
    options: PlanOptions
    announcements: Announcements
    _waiting: dict[Presenter, str] = field(default_factory=dict[Presenter, str])

    def is_planning(self, session_key: str) -> bool:
        return self.modes.of(session_key) is Mode.PLAN

    def submit(self, presenter: Presenter, text: str) -> Plan:
        """Save a plan of this session, which then waits for the user."""
        plan = self.plans.save(text, presenter)
        if plan.status is PlanStatus.WAITING:
            self._waiting[presenter] = plan.name
        self._announce(plan)
        return plan

    def newest_text(self, presenter: Presenter) -> str:
        """The newest plan of this session; empty if there is none, or if it was carried out."""
        plans = self.plans.newest_first(presenter.principal)
        newest = next((plan for plan in plans if plan.is_of(presenter)), None)
        return "" if newest is None or newest.status is PlanStatus.USED else self.plans.text(newest)

    def approve(
        self, presenter: Presenter, plan: Plan, *, edited: str | None = None, granted: Sequence[str] = ()
    ) -> tuple[Plan, Mode]:
        """The user said yes: the session leaves plan mode, once, with these tools granted."""
        decided = self._decide(presenter, plan, PlanStatus.USED, edited=edited)
        mode = self.modes.leave_plan(presenter.session, grant_rules(granted))
        return decided, mode

    def reject(self, presenter: Presenter, plan: Plan, feedback: str) -> Plan:
        return self._decide(presenter, plan, PlanStatus.REJECTED, feedback=feedback)

    def look_for_decision(self, presenter: Presenter) -> None:
        """If this session's plan was approved from outside (`goat-mcp plan approve`), let the session go on."""
        name = self._waiting.get(presenter)
        if name is None:
            return
        plan = self.plans.find(name, presenter.principal)
        if plan is None or plan.status is PlanStatus.REJECTED:
            self._waiting.pop(presenter, None)
        elif plan.status is PlanStatus.APPROVED:
            self.approve(presenter, plan)

    def _decide(
        self, presenter: Presenter, plan: Plan, status: PlanStatus, *, feedback: str = "", edited: str | None = None
    ) -> Plan:
        if not plan.is_of(presenter):
            raise ToolError(ErrorCode.PERMISSION, f"plan {plan.name} is of another session", "Present your own plan.")
        decided = self.plans.decide(plan, status, feedback=feedback, edited=edited)
        self._waiting.pop(presenter, None)
        self._announce(decided)
        return decided

    def _announce(self, plan: Plan) -> None:
        self.announcements.changed("goat://plans", plan.principal)
        self.announcements.changed(f"goat://plans/{plan.name}", plan.principal)


def grant_rules(tools: Sequence[str]) -> tuple[Rule, ...]:
    """The tools as allow rules; names that are no rules are left out."""
    rules: list[Rule] = []
    for tool in tools:
        try:
            rules.append(parse_rule(tool))
        except BrokenRule:
            continue
    return tuple(rules)
