"""Plan mode's end: a plan is saved, the user decides, and the session that made it goes on. The model never decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from goat_mcp.core.announcements import Announcements
from goat_mcp.core.settings_part import SettingsPart
from goat_mcp.permissions.mode import Mode
from goat_mcp.permissions.rule import BrokenRule, Rule, parse_rule
from goat_mcp.permissions.session_modes import SessionModes
from goat_mcp.state.plans import Plan, PlanStatus, PlanStore


class PlanOptions(SettingsPart):
    """Who approves a plan: `ask` the user, by form or with `goat-mcp plan`, or the `host`'s own dialog for the call."""

    approval: Literal["ask", "host"] = "ask"


@dataclass(frozen=True)
class PlanApproval:
    """Plans of one gateway. A plan that waits is remembered with its session, so that a decision finds it."""

    plans: PlanStore
    modes: SessionModes
    options: PlanOptions
    announcements: Announcements
    _waiting: dict[str, str] = field(default_factory=dict[str, str])

    def is_planning(self, session_key: str) -> bool:
        return self.modes.of(session_key) is Mode.PLAN

    def submit(self, session_key: str, text: str) -> Plan:
        """Save a plan of this session, which then waits for the user."""
        plan = self.plans.save(text)
        if plan.status is PlanStatus.WAITING:
            self._waiting[session_key] = plan.name
        self._announce(plan)
        return plan

    def approve(
        self, session_key: str, plan: Plan, *, edited: str | None = None, granted: Sequence[str] = ()
    ) -> tuple[Plan, Mode]:
        """The user said yes: the session leaves plan mode, once, with these tools granted."""
        decided = self.plans.decide(plan, PlanStatus.USED, edited=edited)
        self._waiting.pop(session_key, None)
        mode = self.modes.leave_plan(session_key, grantable(granted))
        self._announce(decided)
        return decided, mode

    def reject(self, session_key: str, plan: Plan, feedback: str) -> Plan:
        self._waiting.pop(session_key, None)
        decided = self.plans.decide(plan, PlanStatus.REJECTED, feedback=feedback)
        self._announce(decided)
        return decided

    def look_for_decision(self, session_key: str) -> None:
        """Where this session's plan was approved from outside (`goat-mcp plan approve`), let it go on."""
        name = self._waiting.get(session_key)
        if name is None:
            return
        plan = self.plans.find(name)
        if plan is None or plan.status is PlanStatus.REJECTED:
            self._waiting.pop(session_key, None)
        elif plan.status is PlanStatus.APPROVED:
            self.approve(session_key, plan)

    def _announce(self, plan: Plan) -> None:
        self.announcements.changed("goat://plans")
        self.announcements.changed(f"goat://plans/{plan.name}")


def grantable(tools: Sequence[str]) -> tuple[Rule, ...]:
    """The tools as allow rules; names that are no rules are left out."""
    rules: list[Rule] = []
    for tool in tools:
        try:
            rules.append(parse_rule(tool))
        except BrokenRule:
            continue
    return tuple(rules)
