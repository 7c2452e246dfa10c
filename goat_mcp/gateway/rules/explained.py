"""What would be decided about a call, and which rule in which file decides it. Nothing runs, hooks neither."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from goat_mcp.calls.permissions.approval import narrowest_rules
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.tool import ChecksInput
from goat_mcp.gateway.build.rule_loading import origin_of
from goat_mcp.gateway.rules.words import commands_that_change

if TYPE_CHECKING:  # whoever asks has one
    from goat_mcp.gateway.gateway import Gateway


async def explained(
    gateway: Gateway, name: str, arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]], principal: str
) -> dict[str, Any]:
    """The facts, for people and programs; the gateway runs. `arguments` makes those of the call from the schema of
    the tool, and may raise `ToolError` as the tool may: that is a denial, too."""
    # A client whose session has been granted nothing yet.
    ctx = ToolContext(call_id=secrets.token_hex(8), session_key="stdio", principal=principal)
    about: dict[str, Any] = {}
    try:
        tool = gateway.catalog.resolve(name)
        about = {"tool_risk": tool.spec.risk.name.lower(), "effects": list(tool.spec.effects)}
        given = arguments(tool.spec.input_schema)
        if isinstance(tool, ChecksInput):
            await tool.checked(tool.validate(given))
        call, decision = gateway.pipeline.admission.decide(name, given, ctx)
    except ToolError as refused:
        return {
            "tool": name,
            "effect": "deny",
            "reason": refused.message,
            "code": str(refused.code),
            "suggestion": refused.suggestion,
            **about,
        }
    permission = gateway.pipeline.permission
    facts: dict[str, Any] = {
        "tool": call.spec.rule_name,
        "effect": decision.effect.value,
        "reason": decision.explanation,
        "mode": permission.modes.default.value,
        "risk": call.spec.risk.name.lower(),
        **about,
    }
    if decision.rule is not None:
        facts["rule"] = decision.rule.text
    if origin := origin_of(gateway.settings, decision):
        facts["origin"] = origin
    if decision.effect.value == "ask":
        asks_form = decision.by_rule or permission.approval.value == "elicit"
        facts["answered_by"] = _THE_USER if asks_form else permission.approval.value
    plans = decision.reason == "mode plan"  # which no rule lifts
    if decision.effect.value != "allow" and not decision.by_rule and not plans:
        facts["would_be_allowed_by"] = list(narrowest_rules(call))
    facts["changed_by"] = commands_that_change(call, decision)
    return facts


_THE_USER = "you, in a form of the client, on the page, or with goat-mcp approve"
_WORDS = {"allow": "allowed", "ask": "asked about", "deny": "denied"}


def explained_lines(facts: Mapping[str, Any]) -> list[str]:
    """The facts in words, the decision first."""
    by = ": " if "code" in facts else ", by "
    lines = [f"{facts['tool']}: {_WORDS[facts['effect']]}{by}{facts['reason']}"]
    if facts.get("suggestion"):
        lines.append(facts["suggestion"])
    if "origin" in facts:
        lines.append(f"written in {facts['origin']}")
    if "answered_by" in facts:
        lines.append(f"who answers: {facts['answered_by']}")
    lines += [f"to change that: {command}" for command in facts.get("changed_by", ())]
    if "risk" in facts:
        of_this = f" (this call: {facts['risk']})" if facts["risk"] != facts["tool_risk"] else ""
        effects = ", ".join(facts["effects"])
        lines.append(f"mode {facts['mode']}, risk {facts['tool_risk']}{of_this}; the tool {effects}")
    return lines
