"""`decide()`: a pure function from a tool, the rules and the mode to a decision that says why."""

from __future__ import annotations

from dataclasses import dataclass

from goat_mcp.core.spec import ToolSpec
from goat_mcp.permissions.mode import AUTO_ALLOWED, Effect, Mode, effect_by_mode
from goat_mcp.permissions.rules import Rule, RuleSet


@dataclass(frozen=True)
class Decision:
    """What is decided and by what: a rule's text, or `mode default`, or `auto-allowed`.

    `by_rule` marks an ask that a user's own rule demands: the host's dialog never stands in for it.
    """

    effect: Effect
    reason: str
    by_rule: bool = False


def decide(spec: ToolSpec, rules: RuleSet, mode: Mode) -> Decision:
    """deny > ask > allow > auto-allowed > mode. Source: design D8, R-PERM-1."""
    for effect, listed in ((Effect.DENY, rules.deny), (Effect.ASK, rules.ask)):
        if (rule := _first(listed, spec)) is not None:
            return Decision(effect, f"rule {rule.text}", by_rule=True)
    by_mode = effect_by_mode(mode, spec)
    if mode is Mode.PLAN and by_mode is Effect.DENY:
        # An allow rule grants a tool, not a change while the user has asked for a plan only.
        return Decision(by_mode, f"mode {mode.value}")
    if (rule := _first(rules.allow, spec)) is not None:
        return Decision(Effect.ALLOW, f"rule {rule.text}", by_rule=True)
    if spec.rule_name in AUTO_ALLOWED:
        return Decision(Effect.ALLOW, "auto-allowed")
    return Decision(by_mode, f"mode {mode.value}")


def _first(rules: tuple[Rule, ...], spec: ToolSpec) -> Rule | None:
    return next((rule for rule in rules if rule.matches(spec.rule_name)), None)
