"""What a permission rule means in plain words, and which stricter rules decide about some of the same calls."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence
from itertools import takewhile

from goat_mcp.calls.permissions.approval import narrowest_rules
from goat_mcp.calls.permissions.decide import Decision
from goat_mcp.calls.permissions.mode import Effect, Mode
from goat_mcp.calls.permissions.patterns import PathPattern
from goat_mcp.calls.permissions.rule import (
    REQUESTS,
    Call,
    CommandSpecifier,
    DomainSpecifier,
    PathSpecifier,
    Rule,
)
from goat_mcp.calls.permissions.rule_end import split_end
from goat_mcp.calls.permissions.rule_set import families_of
from goat_mcp.catalog.builtin_contracts import builtin_contracts
from goat_mcp.files.search.glob_pattern import has_magic
from goat_mcp.web.http.domains import host_is_in_domain

_BRACKETS = re.compile(r"[^()]*\((.*)\)\Z", re.DOTALL)
_EFFECTS = {
    Effect.ALLOW: "allowed without asking",
    Effect.ASK: "asked about each time",
    Effect.DENY: "refused in every mode",
}
_WORDS_OF_FILES = {
    "Read": {Effect.DENY: "reading or changing", Effect.ASK: "reading or changing", Effect.ALLOW: "reading"},
    "Edit": dict.fromkeys(Effect, "changes of"),
}


def meaning(effect: Effect, rule: Rule, now_s: float | None = None) -> str:
    """`allowed without asking: commands like npm run *, until 2026-11-23 18:00`."""
    words = f"{_EFFECTS[effect]}: {_subject(effect, rule)}"
    if rule.until_s is None:
        return words
    is_over = rule.until_s <= (time.time() if now_s is None else now_s)
    return f"{words}, until {at(rule.until_s)}" + (" (which is over)" if is_over else "")


def at(at_s: float) -> str:
    """A moment, in the time of this machine."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at_s))


def _subject(effect: Effect, rule: Rule) -> str:
    text, _ = split_end(rule.text)
    found = _BRACKETS.match(text)
    pattern = found[1].strip() if found is not None else ""
    match rule.specifier:
        case CommandSpecifier(pattern=command):
            return f"commands that are exactly `{pattern}`" if command.is_exact else f"commands like `{pattern}`"
        case PathSpecifier():
            by_effect = _WORDS_OF_FILES.get(rule.tool)
            return f"{by_effect[effect] if by_effect else f'{rule.tool} of'} files like `{pattern}`"
        case DomainSpecifier(domain=domain, only_below=only_below):
            hosts = f"hosts below {domain}" if only_below else f"{domain} and hosts below it"
            return f"{rule.tool} calls for {hosts}"
        case None:
            if rule.server:
                return f"all tools of the server {rule.server}"
            return f"all calls of {rule.tool}" if rule.tool else f"all tools with a name like `{text}`"
        case _:
            name, separator, value = pattern.partition(":")
            like = f"{name} like `{value}`" if separator else f"a type like `{pattern}`"
            return f"calls of {rule.tool} with {like}"


def stricter(effect: Effect, rule: Rule, listed: Sequence[tuple[Effect, Rule]]) -> list[tuple[Effect, Rule]]:
    """The rules that decide in its place about calls that both mean. Where that cannot be told, they are named."""
    above = {Effect.ALLOW: (Effect.DENY, Effect.ASK), Effect.ASK: (Effect.DENY,), Effect.DENY: ()}[effect]
    now_s = time.time()
    return [
        (other_effect, other)
        for other_effect, other in listed
        if other_effect in above and (other.until_s is None or other.until_s > now_s) and _may_meet(rule, other)
    ]


def commands_that_change(call: Call, decision: Decision) -> list[str]:
    """What a person types so that such a call is decided in another way; empty if no rule does that."""
    if decision.rule is not None and not decision.rule.blocks:
        return [f"goat-mcp rules remove {shlex.quote(decision.rule.text)}"]
    if decision.by_rule or decision.reason == f"mode {Mode.PLAN.value}":
        return []  # a protected path, `bash.blocked`, or a mode that no rule lifts
    verb = Effect.DENY if decision.effect is Effect.ALLOW else Effect.ALLOW
    narrow = " ".join(map(shlex.quote, narrowest_rules(call)))
    return [f"goat-mcp rules {verb.value} {narrow}"] if narrow else []


def _may_meet(rule: Rule, other: Rule) -> bool:
    if not _are_about_one_tool(rule, other):
        return False
    mine, its = rule.specifier, other.specifier
    if isinstance(mine, CommandSpecifier) and isinstance(its, CommandSpecifier):
        return _commands_meet(mine, its)
    if isinstance(mine, PathSpecifier) and isinstance(its, PathSpecifier):
        return _paths_meet(mine, its)
    if isinstance(mine, DomainSpecifier) and isinstance(its, DomainSpecifier):
        return host_is_in_domain(mine.domain, its.domain) or host_is_in_domain(its.domain, mine.domain)
    return True


def _are_about_one_tool(rule: Rule, other: Rule) -> bool:
    if rule.server and other.server:
        return rule.server == other.server
    for one, another in ((rule, other), (other, rule)):
        if one.tool and another.names(one.tool):
            return True
        if one.server and another.fits is not None and another.fits(f"mcp__{one.server}__x"):
            return True
    # `Edit(...)` is about all tools that change files, `Read(...)` about all that name them.
    return other.tool in families_of(rule.tool, reading=True) or REQUESTS.get(rule.tool) == other.tool != ""


def _commands_meet(mine: CommandSpecifier, its: CommandSpecifier) -> bool:
    if mine.pattern.is_exact:
        bash = next(spec for spec in builtin_contracts() if spec.name == "Bash")
        return its.hits(Call(bash, {"command": mine.pattern.text}))
    first, other = (one.pattern.text.split(None, 1)[0] for one in (mine, its))
    return first == other or "*" in first or "*" in other


def _paths_meet(mine: PathSpecifier, its: PathSpecifier) -> bool:
    one, another = mine.pattern, its.pattern
    roots = ("/",)
    for exact, pattern in ((one, another), (another, one)):
        if exact.is_exact and exact.anchor == pattern.anchor:
            return pattern.matches(f"{exact.anchor.rstrip('/')}/{exact.relative}", roots)
    if one.anchor != another.anchor or not ("/" in one.relative and "/" in another.relative):
        return True
    # Folders that both spell out and that differ: `src/**` and `secrets/**`.
    return all(first == second for first, second in zip(_folders(one), _folders(another), strict=False))


def _folders(pattern: PathPattern) -> list[str]:
    return list(takewhile(lambda name: not has_magic(name), pattern.relative.split("/")[:-1]))
