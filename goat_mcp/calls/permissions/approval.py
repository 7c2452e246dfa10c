"""What a person is asked about one call: the form, its choices, and the rules that "always allow" would write."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from goat_mcp.calls.permissions.patterns import exact_path_pattern
from goat_mcp.calls.permissions.rule import FILE_WRITERS, REQUESTS, BrokenRule, Call, parse_rule
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


_AGENT_TYPE = re.compile(r"[A-Za-z0-9_-]+\Z")
"""Nothing in it that means more than itself in a rule."""


def narrowest_rules(call: Call) -> tuple[str, ...]:
    """Texts of rules; empty if none would let this call pass again: it is asked about each time."""
    if call.spec.rule_name == "Bash":
        return _of_script(call)
    if call.runs:
        return ()  # commands elsewhere: a rule for this tool would let any of them pass
    texts = _of_tool(call)
    # A name may hold what means something else in a rule.
    return texts if texts and all(_covers(text, call) for text in texts) else ()


def _covers(text: str, call: Call) -> bool:
    try:
        rule = parse_rule(text)
    except BrokenRule:
        return False
    return rule.tool == call.spec.rule_name and (rule.specifier is None or rule.specifier.hits(call))


def _of_tool(call: Call) -> tuple[str, ...]:
    name = call.spec.rule_name
    if name in FILE_WRITERS:
        return tuple(dict.fromkeys(f"{name}({exact_path_pattern(path)})" for path in call.paths))
    if name == "WebFetch" or name in REQUESTS:
        from urllib.parse import urlsplit

        try:
            host = urlsplit(str(call.arguments.get("url", ""))).hostname
        except ValueError:
            host = None
        return (f"{name}(domain:{host})",) if host else ()
    if name == "Agent":
        kind = str(call.arguments.get("subagent_type") or "general-purpose")
        return (f"Agent({kind})",) if _AGENT_TYPE.match(kind) else ()
    return (name,)


def _of_script(call: Call) -> tuple[str, ...]:
    import shlex

    from goat_mcp.commands.shell.script_rules import CommandPattern, allowed_by

    script = call.script
    if call.arguments.get("env"):
        return ()  # what a command means depends on it: PATH, GIT_DIR
    if script.not_plain or len(script.commands) != 1:
        return ()  # of `cd build && rm -rf src` no part may be allowed by itself
    text = shlex.join(script.commands[0])
    try:
        pattern = CommandPattern.parse(text)
    except ValueError:
        return ()
    # What a pattern cannot spell out word for word would mean something else, or nothing.
    if not pattern.is_exact or allowed_by(script, [pattern]):
        return ()
    return (f"Bash({text})",)
