"""What a person is asked about one call in their client: the form, its answer, and the narrowest rules that would let
the call pass again."""

from __future__ import annotations

import re
from collections.abc import Mapping

from goat_mcp.calls.approvals import wording
from goat_mcp.calls.approvals.record import Request, Verdict
from goat_mcp.calls.approvals.scopes import (
    ALWAYS,
    COMMAND,
    EDITS,
    ONCE,
    SERVER,
    SERVER_READS,
    SESSION,
    WORKSPACE,
    chosen_verdict,
)
from goat_mcp.calls.permissions.patterns import exact_path_pattern
from goat_mcp.calls.permissions.rule import FILE_WRITERS, REQUESTS, BrokenRule, Call, parse_rule
from goat_mcp.core.elicitation import Answer, Form, Option, Question
from goat_mcp.files.documents.visible_text import make_visible

ALLOW_ONCE, ALLOW_SESSION, ALLOW_ALWAYS, DENY = "allow_once", "allow_session", "allow_always", "deny"
DECISION, REASON = "decision", "reason"
_REASON_CHARS = 2_000
_VALUES: Mapping[str, tuple[str, bool]] = {
    ALLOW_ONCE: (ONCE, False),
    ALLOW_SESSION: (SESSION, False),
    ALLOW_ALWAYS: (ALWAYS, False),
    "allow_edits": (EDITS, False),
    "allow_workspace": (WORKSPACE, False),
    "allow_command": (COMMAND, False),
    "always_command": (COMMAND, True),
    "allow_server_reads": (SERVER_READS, False),
    "allow_server": (SERVER, False),
}
"""What a form gives back: the scope, and whether its rules are remembered."""


def form_of(request: Request) -> Form:
    """The request as a client shows it: the same words as everywhere else."""
    options = [
        Option(value, wording.choice_title(choice, remember=remembers))
        for value, (scope, remembers) in _VALUES.items()
        for choice in request.choices
        if choice.scope == scope and (choice.may_remember or not remembers)
    ]
    questions = (
        Question(DECISION, "Decision", options=(*options, Option(DENY, wording.DENY)), required=True),
        Question(REASON, wording.REASON, only_with=DENY),
    )
    return Form("\n".join(wording.lines_of(request)), questions, opens_call=True, subject=request.subject)


def verdict_of(answer: Answer, request: Request) -> Verdict | None:
    """What a person answered to that form; None if it is no answer to it."""
    chosen = answer.text(DECISION)
    if chosen == DENY:
        return Verdict(approved=False, reason=make_visible(answer.text(REASON).strip()[:_REASON_CHARS]))
    if chosen not in _VALUES:
        return None
    scope, remembers = _VALUES[chosen]
    if not any(one.scope == scope and (one.may_remember or not remembers) for one in request.choices):
        return None
    return chosen_verdict(request, scope, remember=remembers)


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
