"""What a person is asked who decides about one call, and what the choices are called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from goat_mcp.calls.permissions.call import Call
from goat_mcp.core.elicitation import Form, Option, Question
from goat_mcp.core.errors import cut_middle
from goat_mcp.files.documents.visible_text import make_visible

ALLOW_ONCE, ALLOW_SESSION, ALLOW_ALWAYS, DENY = "allow_once", "allow_session", "allow_always", "deny"
DECISION = "decision"
_SHOWN_CHARS = 4_000
_RULES_CHARS = 1_000
_COMMAND_CHARS = 20_000
"""More than a command may have that a rule could let pass: it is shown whole, for all of it will run."""


def approval_form(call: Call, reason: str, rules: Sequence[str]) -> Form:
    """`rules` are those that "for this session" and "always" would add; with none only this call can be allowed."""
    choices = [Option(ALLOW_ONCE, "Allow once")]
    if rules:
        place = f" in {call.directory}" if call.directory else ""
        shown = make_visible(cut_middle(", ".join(rules) + place, _RULES_CHARS))
        choices += [
            Option(ALLOW_SESSION, f"Allow for this session: {shown}"),
            Option(ALLOW_ALWAYS, f"Always allow: {shown}"),
        ]
    choices.append(Option(DENY, "Deny"))
    arguments = [_shown(call.spec.rule_name, name, value) for name, value in call.arguments.items()]
    warnings = [f"Careful: its definition {'; '.join(found)}"] if (found := call.spec.warnings) else []
    message = "\n".join([f"Allow {call.spec.rule_name}? ({make_visible(reason)})", *warnings, *arguments])
    return Form(message, (Question(DECISION, "Decision", options=tuple(choices), required=True),), opens_call=True)


def _shown(tool: str, name: str, value: Any) -> str:
    """An argument as a person sees it: cut in the middle, with nothing in it that hides or reorders text, and its
    further lines indented, so that none of them looks like another argument."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    limit = _COMMAND_CHARS if (tool, name) == ("Bash", "command") else _SHOWN_CHARS
    first, *more = make_visible(cut_middle(text, limit)).split("\n")
    return "\n".join([f"{make_visible(name)}: {first}", *(f"    {line}" for line in more)])
