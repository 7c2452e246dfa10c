"""The narrowest rules that would have allowed a call: what "always allow" writes down."""

from __future__ import annotations

import re

from goat_mcp.calls.permissions.call import Call
from goat_mcp.calls.permissions.path_pattern import exact_path_pattern
from goat_mcp.calls.permissions.rule import BrokenRule, parse_rule
from goat_mcp.calls.permissions.specifiers import FILE_WRITERS, REQUESTS

_AGENT_TYPE = re.compile(r"[A-Za-z0-9_-]+\Z")
"""Nothing in it that means more than itself in a rule."""


def narrowest_rules(call: Call) -> tuple[str, ...]:
    """Texts of rules; empty where none would let this call pass again: it is asked about each time."""
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
        return tuple(f"{name}({exact_path_pattern(path)})" for path in call.paths)
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

    from goat_mcp.commands.shell.pattern import CommandPattern
    from goat_mcp.commands.shell.rules import allowed_by

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
