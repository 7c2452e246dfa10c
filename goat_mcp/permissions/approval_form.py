"""What a person is asked who decides about one call, and what the choices are called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from goat_mcp.core.errors import cut_middle
from goat_mcp.core.questions import Form, Option, Question
from goat_mcp.documents.visible_text import make_visible
from goat_mcp.permissions.call import Call

ALLOW_ONCE, ALLOW_SESSION, ALLOW_ALWAYS, DENY = "allow_once", "allow_session", "allow_always", "deny"
DECISION = "decision"
_SHOWN_CHARS = 1_000


def approval_form(call: Call, reason: str, rules: Sequence[str]) -> Form:
    """`rules` are those that "for this session" and "always" would add; with none only this call can be allowed."""
    choices = [Option(ALLOW_ONCE, "Allow once")]
    if rules:
        place = f" in {call.directory}" if call.directory else ""
        shown = make_visible(cut_middle(", ".join(rules) + place, _SHOWN_CHARS))
        choices += [
            Option(ALLOW_SESSION, f"Allow for this session: {shown}"),
            Option(ALLOW_ALWAYS, f"Always allow: {shown}"),
        ]
    choices.append(Option(DENY, "Deny"))
    arguments = [f"{name}: {_shown(value)}" for name, value in call.arguments.items()]
    message = "\n".join([f"Allow {call.spec.rule_name}? ({make_visible(reason)})", *arguments])
    return Form(message, (Question(DECISION, "Decision", options=tuple(choices), required=True),), opens_call=True)


def _shown(value: Any) -> str:
    """An argument as a person sees it: cut in the middle, and with nothing in it that hides or reorders text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return make_visible(cut_middle(text, _SHOWN_CHARS))
