"""The pipeline's permission stage: decide, and where the decision is to ask, ask whoever `approval` names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.questions import Form, Option, Question, Reply
from goat_mcp.core.spec import ToolSpec
from goat_mcp.documents.visible_text import make_visible
from goat_mcp.permissions.decide import Decision, decide
from goat_mcp.permissions.mode import Approval, Effect, Mode
from goat_mcp.permissions.protected import protected_reason
from goat_mcp.permissions.rules import RuleSet
from goat_mcp.permissions.session_modes import SessionModes

ALLOW_ONCE, DENY = "allow_once", "deny"
_DECISION = "decision"
_SHOWN_CHARS = 1_000
_REFUSALS = (Reply.DECLINED, Reply.CANCELLED)
"""A person saw the form and did not say yes. The other replies mean that nobody saw it, or nobody answered."""
_STRICTER = {Effect.ALLOW: 0, Effect.ASK: 1, Effect.DENY: 2}


@dataclass(frozen=True)
class Permission:
    """Rules, mode and approval of one gateway."""

    rules: RuleSet = field(default_factory=RuleSet)
    modes: SessionModes = field(default_factory=SessionModes)
    approval: Approval = Approval.HOST
    roots: Callable[[], Sequence[Path]] = tuple
    """The workspace's directories: what is protected is judged below them, wherever they themselves lie."""

    def decide(self, spec: ToolSpec, ctx: ToolContext, writes: Sequence[str] = ()) -> Decision:
        """What rules and mode say about a call that writes the absolute real paths `writes`."""
        session = ctx.rights.client_session or ctx.session_key
        session_mode = self.modes.of(session)
        rules = self.rules
        if granted := self.modes.granted(session):
            rules = replace(rules, allow=(*rules.allow, *granted))
        # An agent's own mode may only narrow what its starter's session allows.
        modes = (session_mode, *map(Mode, ctx.rights.modes))
        if spec.rule_name in ctx.rights.granted:
            modes = (Mode.BYPASS,)  # it came with the agent, whom somebody allowed; rules still hold
        decision = max((decide(spec, rules, mode) for mode in modes), key=lambda choice: _STRICTER[choice.effect])
        if decision.effect is not Effect.DENY:
            below = ctx.rights.writes_below
            for path in writes:
                if below and not PurePath(path).is_relative_to(below):
                    return Decision(Effect.DENY, f"this agent's limits: it writes below {below} only", by_rule=True)
                if (reason := protected_reason(self._below_root(path))) is not None:
                    return Decision(Effect.ASK, f"{path} is protected: {reason}", by_rule=True)
        return decision

    def _below_root(self, path: str) -> str:
        below = [PurePath(path).relative_to(root) for root in self.roots() if PurePath(path).is_relative_to(root)]
        return str(min(below, key=lambda relative: len(relative.parts), default=PurePath(path)))

    async def settle(
        self, decision: Decision, spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext
    ) -> Decision:
        """The decision with who allowed it; whoever is asked sees the arguments.

        Raises `ToolError`: PERMISSION, or PLAN_MODE.
        """
        if decision.effect is Effect.ALLOW:
            return decision
        if decision.effect is Effect.ASK:
            if self.approval is Approval.HOST and not decision.by_rule and ctx.rights.depth == 0:
                # The program that launched us shows its own dialog for whatever is not marked read-only (D8);
                # it never sees the calls of an agent that runs in here.
                return Decision(Effect.ALLOW, f"{decision.reason}, left to the host")
            if self.approval is not Approval.DENY or decision.by_rule:
                answer = await ctx.ask(_approval_form(spec, arguments, decision))
                if answer.text(_DECISION) == ALLOW_ONCE:
                    return Decision(Effect.ALLOW, f"{decision.reason}, allowed once by the user")
                if answer.text(_DECISION) == DENY or answer.reply in _REFUSALS:
                    raise ToolError(
                        ErrorCode.PERMISSION,
                        f"the user refused {spec.rule_name}",
                        "Ask the user how to go on.",
                        facts={"tool": spec.rule_name},
                        interrupts=True,
                    )
            raise _denied(
                spec,
                f"{spec.rule_name} needs an approval ({decision.reason}) and nobody could be asked",
                "Tell the user; they can make this change themselves or change the rule."
                if decision.by_rule
                else f"The user can allow it with the rule permissions.allow: [{spec.rule_name}].",
            )
        if decision.reason == f"mode {Mode.PLAN.value}":
            raise ToolError(
                ErrorCode.PLAN_MODE,
                f"{spec.rule_name} may change something, and this session only plans",
                "Finish the plan; the user ends plan mode.",
            )
        raise _denied(
            spec,
            f"{spec.rule_name} is denied by {decision.reason}",
            "Choose another way; only the user can change the rule."
            if decision.by_rule
            else f"The user can allow it with the rule permissions.allow: [{spec.rule_name}].",
        )


def _approval_form(spec: ToolSpec, arguments: Mapping[str, Any], decision: Decision) -> Form:
    choices = (Option(ALLOW_ONCE, "Allow once"), Option(DENY, "Deny"))
    shown = [f"{name}: {_shown(value)}" for name, value in arguments.items()]
    message = "\n".join([f"Allow {spec.rule_name}? ({decision.reason})", *shown])
    return Form(message, (Question(_DECISION, "Decision", options=choices, required=True),))


def _shown(value: Any) -> str:
    """An argument as a person sees it: cut in the middle, and with nothing in it that hides or reorders text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return make_visible(cut_middle(text, _SHOWN_CHARS))


def _denied(spec: ToolSpec, message: str, suggestion: str) -> ToolError:
    return ToolError(ErrorCode.PERMISSION, message, suggestion, facts={"tool": spec.rule_name})
