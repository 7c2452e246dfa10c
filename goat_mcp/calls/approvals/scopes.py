"""The scopes that a person may choose when they allow a call: computed from the call, never free text."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.calls.approvals.record import Choice, Request, Verdict
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.core.errors import ErrorCode, ToolError

ONCE, SESSION, ALWAYS = "once", "session", "always"


def choices_for(call: Call, narrowest: Sequence[str]) -> tuple[Choice, ...]:
    """`narrowest` are the rules that would let just this call pass again; without any it is allowed once only."""
    choices = [Choice(ONCE, "Allow once")]
    if narrowest:
        shown = ", ".join(narrowest)
        choices += [
            Choice(SESSION, f"Allow for this session: {shown}", tuple(narrowest)),
            Choice(ALWAYS, f"Always allow: {shown}", tuple(narrowest)),
        ]
    return tuple(choices)


def chosen_verdict(request: Request, scope: str, *, remember: bool = False, prefix: str = "") -> Verdict:
    """The approval that a person means. Raises `ToolError(INPUT)` for a scope that was not offered."""
    choice = next((one for one in request.choices if one.scope == scope), None)
    if choice is None and not (scope == ONCE and not request.choices):
        offered = ", ".join(one.scope for one in request.choices) or ONCE
        raise ToolError(ErrorCode.INPUT, f"scope {scope[:40]!r} is not offered here", f"Choose one of {offered}.")
    if choice is None:
        return Verdict(approved=True)
    return Verdict(True, scope, choice.rules, remember=scope == ALWAYS or (remember and choice.may_remember))
