"""`decide()`: a pure function from a call, the rules and the mode to a decision that says why (R-PERM-1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from goat_mcp.calls.permissions.mode import AUTO_ALLOWED, Effect, Mode, effect_by_mode
from goat_mcp.calls.permissions.rule import Call, CommandSpecifier, Rule
from goat_mcp.calls.permissions.rule_set import RuleList, RuleSet, families_of

if TYPE_CHECKING:  # loaded with the first rule about commands
    from goat_mcp.commands.shell.script_rules import CommandPattern


@dataclass(frozen=True)
class Decision:
    """What is decided and by what: a rule's text, or `mode default`, or `auto-allowed`. `detail` may quote the call, so
    it is for people and never for the record.

    `by_rule` marks an ask that a user's own rule demands: the host's dialog never stands in for it. `rule` is that
    rule, if it is one; `decided_by` who answered an ask. `is_blocked`: by `bash.blocked`, and no permission rule.
    """

    effect: Effect
    reason: str
    by_rule: bool = False
    rule: Rule | None = None
    decided_by: str = ""
    detail: str = ""
    is_blocked: bool = False

    def is_rule_against(self, other: Decision) -> bool:
        """Whether a rule of the user is stricter than the other decision."""
        return self.by_rule and _strictness(self) > _strictness(other)

    @property
    def explanation(self) -> str:
        """The reason, for people."""
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


def decide(call: Call, rules: RuleSet, mode: Mode) -> Decision:
    """deny > ask > allow > auto-allowed > mode. Source: design D8, R-PERM-1."""
    spec = call.spec
    if (rule := rules.denying(call)) is not None:
        return _by(Effect.DENY, rule, call)
    if (named := _on_files(call, rules.deny, Effect.DENY)) is not None:
        return named
    if hidden := _hidden(call, rules.deny):
        is_blocked = all(rule.blocks for rule in rules.deny.about_commands())
        reason = f"rules about commands: what it would run cannot be told: {hidden}"
        return Decision(Effect.DENY, reason, by_rule=True, is_blocked=is_blocked)
    if call.scripts and rules.only_commands and (reason := _not_listed(call, rules.only_commands)):
        return Decision(Effect.DENY, "bash.allowed", by_rule=True, detail=reason)
    if (rule := rules.asking(call)) is not None:
        return _by(Effect.ASK, rule, call)
    if (named := _on_files(call, rules.ask, Effect.ASK)) is not None:
        return named
    if hidden := _hidden(call, rules.ask):
        return Decision(Effect.ASK, f"rules about commands: what it would run cannot be told: {hidden}", by_rule=True)
    by_mode = effect_by_mode(mode, spec)
    if mode is Mode.PLAN and by_mode is Effect.DENY:
        # An allow rule grants a tool, not a change while the user has asked for a plan only.
        return Decision(by_mode, f"mode {mode.value}")
    if (rule := _allowing(call, rules)) is not None:
        return _by(Effect.ALLOW, rule)
    if spec.rule_name in AUTO_ALLOWED:
        return Decision(Effect.ALLOW, "auto-allowed")
    if mode is Mode.ACCEPT_EDITS and by_mode is Effect.ALLOW and _writes_outside(call):
        return Decision(Effect.ASK, f"mode {mode.value}: this lies outside the workspace")
    return Decision(by_mode, f"mode {mode.value}")


def _writes_outside(call: Call) -> bool:
    return any(not any(PurePath(path).is_relative_to(root) for root in call.roots) for path in call.writes)


def _strictness(decision: Decision) -> int:
    if decision.effect is Effect.ASK:
        return 2 if decision.by_rule else 1
    return 3 if decision.effect is Effect.DENY else 0


def _by(effect: Effect, rule: Rule, call: Call | None = None) -> Decision:
    detail = rule.specifier.why_hit(call) if call is not None and isinstance(rule.specifier, CommandSpecifier) else ""
    return Decision(effect, f"rule {rule.text}", by_rule=True, rule=rule, detail=detail, is_blocked=rule.blocks)


def _on_files(call: Call, rules: RuleList, effect: Effect) -> Decision | None:
    """What rules about files say of those that a command names."""
    if call.spec.rule_name != "Bash" or not call.directory or not rules.bind_commands_by_files:
        return None
    from goat_mcp.calls.permissions.command_files import rule_on_files

    if (hit := rule_on_files(rules, call)) is None:
        return None
    return Decision(effect, f"rule {hit.rule.text}", by_rule=True, rule=hit.rule, detail=hit.explanation)


def _hidden(call: Call, rules: RuleList) -> str:
    """Why rules about commands cannot see all that a script would run; empty if they can, or there are none.

    Source: R-SHELL-5, R-SHELL-6.
    """
    if not call.scripts or next(rules.about_commands(), None) is None:
        return ""
    return next((script.hidden for script in call.scripts if script.hidden), "")


def _not_listed(call: Call, listed: Sequence[CommandPattern]) -> str:
    """Why a script runs something that `bash.allowed` does not list; empty if it runs nothing else."""
    for script in call.scripts:
        if script.hidden:
            return f"what it would run cannot be told: {script.hidden}"
        for words in script.all_commands:
            if words[0] == "export" and call.exports:
                continue  # the call's own variables
            if not any(pattern.matches_any_spelling(words) for pattern in listed):
                return f"{words[0]} is not among the commands that may run"
    return ""


def _allowing(call: Call, rules: RuleSet) -> Rule | None:
    """The rule, or the first of several that together allow the whole call."""
    if not rules.allow.rules:
        return None
    name = call.spec.rule_name
    about_commands: list[tuple[Rule, CommandSpecifier]] = []
    for rule in rules.allow.about_call(call):
        if isinstance(rule.specifier, CommandSpecifier):
            if _holds_here(rule, rule.specifier, call):
                about_commands.append((rule, rule.specifier))
        elif rule.covers(call):
            return rule
    # A path through a link is two: the one asked for and the file it leads to. Each needs a rule.
    families = families_of(name)
    if (rule := next(rules.allow.about_all_files(*families), None)) is not None:
        return rule
    found = [next(rules.allow.about_path(path, call.roots, *families, copies=False), None) for path in call.paths]
    if found and all(found):
        return found[0]
    # What a command means depends on its environment (PATH, GIT_DIR): rules speak of the user's own only.
    if about_commands and not call.arguments.get("env"):
        from goat_mcp.commands.shell.script_rules import allowed_by

        if allowed_by(call.script, [specifier.pattern for _, specifier in about_commands]) == "":
            first = call.script.commands[0] if call.script.commands else ()
            return next((rule for rule, one in about_commands if one.pattern.matches(first)), about_commands[0][0])
    return None


def _holds_here(rule: Rule, specifier: CommandSpecifier, call: Call) -> bool:
    """Whether a rule about commands speaks of the directory that the call begins in."""
    if rule.directory:
        return rule.directory == call.directory
    # `./run.sh` in the settings is the one of the workspace, not of whatever folder lies below.
    program = specifier.pattern.text.split(None, 1)[0].strip("'\"")
    return "/" not in program or program.startswith("/") or not call.directory or call.directory in call.roots
