"""The scopes that a person may choose when they allow a call: computed from the call, never free text.

The rules of a verdict hold in the directory where the call began (`request.directory`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from goat_mcp.calls.approvals import wording
from goat_mcp.calls.approvals.record import Choice, Request, Verdict
from goat_mcp.calls.permissions.decide import decide
from goat_mcp.calls.permissions.mode import Effect, Mode
from goat_mcp.calls.permissions.patterns import exact_path_pattern
from goat_mcp.calls.permissions.rule import FILE_WRITERS, BrokenRule, Call, Rule, parse_rule
from goat_mcp.calls.permissions.rule_set import RuleSet
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.names import UPSTREAM_PREFIX, InvalidName, split_name
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.side_effect import Risk
from goat_mcp.core.spec import ToolSpec
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.files.workspace.protected import protected_reason

ONCE, SESSION, ALWAYS = "once", "session", "always"
EDITS, WORKSPACE, COMMAND, SERVER_READS, SERVER = "edits", "workspace", "command", "server_reads", "server"
COMMAND_FACT = "command"
"""The member of a request's facts with the words of its command, if their beginning may be allowed."""
_TITLE_CHARS = 1_000
_MAX_READING_TOOLS = 20
"""So many names a person reads before they say yes."""

ListedSpecs = Callable[[], Iterable[ToolSpec]]


def choices_for(
    call: Call,
    narrowest: Sequence[str],
    *,
    asked_by_rule: bool = False,
    listed: ListedSpecs = tuple,
    is_confined: bool = False,
    redactor: Redactor | None = None,
) -> tuple[Choice, ...]:
    """`narrowest` are the rules that would let just this call pass again, `listed` the tools that this client sees:
    without them no choice about a server's reading tools is made.

    `asked_by_rule`: an ask rule, the protection of a path or a hook asks. No allow rule lifts that, so only this call
    can be allowed. `is_confined`: a sandbox would keep commands inside the workspace, without network. A choice whose
    rules would not let this very call pass, or hold a secret, is left out.
    """
    once = Choice(ONCE, wording.ONCE)
    if asked_by_rule:
        return (once,)
    place = f" in {call.directory}" if call.directory else ""
    wider = (
        ()
        if call.runs
        else (
            *_edits(call),
            *(_workspace(call) if is_confined else ()),
            *_command(call, place, redactor),
            *_server(call, listed),
        )
    )
    found = [*_narrow(call, narrowest, place), *(one for one in wider if _lets_pass(one.rules, call))]
    return (once, *(one for one in found if redactor is None or not _has_secret(one, redactor)))


def _narrow(call: Call, rules: Sequence[str], place: str) -> Sequence[Choice]:
    shown = _shown(", ".join(rules) + place)
    if not rules:
        return ()
    return (
        Choice(SESSION, f"{wording.FOR_SESSION}: {shown}", tuple(rules)),
        Choice(ALWAYS, f"{wording.ALWAYS}: {shown}", tuple(rules)),
    )


def _edits(call: Call) -> Sequence[Choice]:
    """Of a rule about Edit: it holds for every tool that changes files."""
    roots = _roots(call)
    if call.spec.rule_name not in FILE_WRITERS or any(_is_protected(path, roots) for path in call.paths):
        return ()
    shown = _shown(", ".join(roots))
    return (Choice(EDITS, f"{wording.FOR_SESSION}: all edits of files in {shown}", _edit_rules(roots)),)


def _workspace(call: Call) -> Sequence[Choice]:
    """What a sandboxed command could change anyway: one question for the work on a project."""
    roots = _roots(call)
    if call.spec.rule_name != "Bash" and not _edits(call):
        return ()
    shown = _shown(", ".join(roots))
    title = f"{wording.FOR_SESSION}: all edits of files in {shown}, and all commands: the sandbox keeps them in there"
    return (Choice(WORKSPACE, f"{title}, without network", (*_edit_rules(roots), "Bash")),) if roots else ()


def _roots(call: Call) -> Sequence[str]:
    return [root for root in dict.fromkeys(call.roots) if root.strip("/")]


def _edit_rules(roots: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"Edit({exact_path_pattern(root)}/**)" for root in roots)


def _is_protected(path: str, roots: Sequence[str]) -> bool:
    above = [root for root in roots if PurePath(path).is_relative_to(root)]
    return protected_reason(path, root=min(above, key=len, default="")) is not None


def _command(call: Call, place: str, redactor: Redactor | None) -> Sequence[Choice]:
    words = plain_command(call)
    # The record holds all of them, for a prefix that a person edits.
    if not words or (redactor is not None and redactor.text(whole := shlex.join(words)) != whole):
        return ()
    from goat_mcp.commands.shell.command_prefix import command_prefix  # no start-up should pay for it

    if not (count := command_prefix(words)):
        return ()
    prefix = shlex.join(words[:count])
    title = f"{wording.FOR_SESSION}: commands that begin with `{_shown(prefix)}`{_shown(place)}"
    return (Choice(COMMAND, title, (_prefix_rule(words[:count]),), may_remember=True, prefix=prefix),)


def plain_command(call: Call) -> tuple[str, ...]:
    """The words of a call that runs one plain command and sets no variables for it."""
    if call.spec.rule_name != "Bash" or call.arguments.get("env"):
        return ()
    script = call.script
    return script.commands[0] if not script.not_plain and len(script.commands) == 1 else ()


def _prefix_rule(words: Sequence[str]) -> str:
    from goat_mcp.commands.shell.command_prefix import prefix_pattern

    return f"Bash({prefix_pattern(words)})"


def _server(call: Call, listed: ListedSpecs) -> Sequence[Choice]:
    name = call.spec.rule_name
    try:
        server = split_name(name).server
    except InvalidName:
        return ()
    found: list[Choice] = []
    if _only_reads(call.spec) and len(tools := _reading_tools(call.spec, server, listed)) > 1:
        shown = _shown(", ".join(tool.removeprefix(f"{UPSTREAM_PREFIX}{server}__") for tool in tools))
        title = f"{wording.FOR_SESSION}: these tools of {_shown(server)}, which only read: {shown}"
        found.append(Choice(SERVER_READS, title, tools))
    title = f"{wording.FOR_SESSION}: all tools of {_shown(server)}, also those that change something"
    return (*found, Choice(SERVER, title, (f"{UPSTREAM_PREFIX}{server}",)))


def _reading_tools(asked: ToolSpec, server: str, listed: ListedSpecs) -> tuple[str, ...]:
    """The one that is asked about first; no more than a person reads."""
    names = (
        spec.rule_name
        for spec in listed()
        if _is_of(spec.rule_name, server) and _only_reads(spec) and not spec.warnings
    )
    others = [name for name in sorted(set(names)) if name != asked.rule_name and _names_one_tool(name)]
    found = [asked.rule_name]
    for name in others[: _MAX_READING_TOOLS - 1]:
        if sum(map(len, found)) + len(name) < _TITLE_CHARS:
            found.append(name)
    return tuple(found)


def _is_of(rule_name: str, server: str) -> bool:
    try:
        return split_name(rule_name).server == server
    except InvalidName:
        return False


def _only_reads(spec: ToolSpec) -> bool:
    """By our own judgement of the tool (RSK-2): its hints are published as read-only only if nothing speaks against it,
    and what its server claims without the operator's word for it counts as medium."""
    return spec.hints.read_only and spec.risk <= Risk.MEDIUM


def _names_one_tool(text: str) -> bool:
    """A name may hold what means something else in a rule."""
    rule = _parsed(text)
    return rule is not None and rule.tool == text and rule.specifier is None


def _parsed(text: str) -> Rule | None:
    try:
        return parse_rule(text)
    except BrokenRule:
        return None


def _lets_pass(texts: Sequence[str], call: Call) -> bool:
    """Whether with these rules, and no others, this call would run without being asked about."""
    rules = [_parsed(text) for text in texts]
    known = [replace(rule, directory=call.directory) for rule in rules if rule is not None]
    if len(known) < len(texts):
        return False
    if not all(rule.specifier is not None or rule.tool or rule.server for rule in known):
        return False  # a name with a wildcard in it: the rule would be about other tools
    decision = decide(call, RuleSet.of(allow=known), Mode.DONT_ASK)
    return decision.effect is Effect.ALLOW and decision.rule is not None


def _has_secret(choice: Choice, redactor: Redactor) -> bool:
    return any(redactor.text(text) != text for text in (choice.title, choice.prefix, *choice.rules))


def _shown(text: str) -> str:
    return make_visible(cut_middle(text, _TITLE_CHARS))


def chosen_verdict(request: Request, scope: str, *, remember: bool = False, prefix: str = "") -> Verdict:
    """The approval that a person means. `prefix` is the command prefix as they edited it, empty for the one offered.

    Raises `ToolError(INPUT)` for a scope that was not offered, and for a prefix that is none or may not be allowed.
    """
    choice = next((one for one in request.choices if one.scope == scope), None)
    if choice is None and not (scope == ONCE and not request.choices):
        offered = ", ".join(one.scope for one in request.choices) or ONCE
        raise ToolError(ErrorCode.INPUT, f"scope {scope[:40]!r} is not offered here", f"Choose from: {offered}.")
    if choice is None:
        choice = Choice(ONCE, wording.ONCE)
    if remember and choice.scope != ALWAYS and not choice.may_remember:
        holds = "for this one call" if choice.scope == ONCE else "for this session"
        raise ToolError(ErrorCode.INPUT, f"scope {choice.scope} holds {holds} only", "Leave out --always.")
    rules = choice.rules
    if prefix.strip():
        if not choice.prefix:
            raise ToolError(ErrorCode.INPUT, f"scope {scope} takes no prefix", f"Send the prefix with scope {COMMAND}.")
        rules = (_prefix_rule(_edited_prefix(request, choice, prefix)),)
    keeps = choice.scope == ALWAYS or (remember and choice.may_remember)
    return Verdict(True, scope, rules, remember=keeps)


def _edited_prefix(request: Request, choice: Choice, text: str) -> Sequence[str]:
    """Its words. Raises `ToolError(INPUT)`."""
    from goat_mcp.commands.shell.command_prefix import prefix_problem

    asked: Any = request.facts.get(COMMAND_FACT, ())
    command = tuple(map(str, asked))
    try:
        words = tuple(shlex.split(text.strip().removesuffix(" *")))
    except ValueError as problem:
        raise _no_prefix(text, str(problem).lower(), choice) from None
    if not words or command[: len(words)] != words:
        raise _no_prefix(text, "the command that was asked about does not begin with these words", choice)
    if why := prefix_problem(command, len(words)):
        raise _no_prefix(text, why, choice)
    return words


def _no_prefix(text: str, why: str, choice: Choice) -> ToolError:
    return ToolError(
        ErrorCode.INPUT,
        f"the prefix {make_visible(text[:200])!r} cannot be allowed: {why}",
        f"Use whole words of the command, from its first one on, such as `{choice.prefix}`.",
    )
