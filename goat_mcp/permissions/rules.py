"""Rules a user writes: which tools are allowed, asked about or denied.

This module knows whole-tool rules: `Bash`, `mcp__github`, `mcp__github__*`, `mcp__github__create_issue`.
A rule it does not understand stops the start (R-PERM-7): a rule that is silently ignored protects nobody.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from goat_mcp.core.names import (
    BUILTIN_NAMES,
    NAME_ALIASES,
    SEPARATOR,
    UPSTREAM_PREFIX,
    InvalidName,
    split_name,
)

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")


class BrokenRule(ValueError):
    """A permission rule that cannot be understood; the text names the rule and what to write instead."""


@dataclass(frozen=True)
class Rule:
    """One parsed rule. `text` is what the user wrote and what decisions quote."""

    text: str
    tool: str = ""
    server: str = ""

    def matches(self, rule_name: str) -> bool:
        if self.tool:
            return rule_name == self.tool
        return rule_name.startswith(f"{UPSTREAM_PREFIX}{self.server}{SEPARATOR}")


def parse_rule(text: str) -> Rule:
    """Raises `BrokenRule`."""
    rule = text.strip()
    if "(" in rule or ")" in rule:
        raise BrokenRule(f"rule {text!r}: patterns in brackets are not supported yet; write the whole tool, e.g. Bash")
    if not rule.startswith(UPSTREAM_PREFIX):
        if not _PLAIN_NAME.match(rule):
            raise BrokenRule(f"rule {text!r} is not a tool name; write e.g. Bash, mcp__github or mcp__github__search")
        tool = NAME_ALIASES.get(rule, rule)
        if SEPARATOR not in tool and tool not in BUILTIN_NAMES:
            near = difflib.get_close_matches(tool, BUILTIN_NAMES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"tools are {', '.join(BUILTIN_NAMES)} and mcp__SERVER__TOOL"
            raise BrokenRule(f"rule {text!r} names no tool; {hint}")
        return Rule(rule, tool=tool)
    server_only = rule.removeprefix(UPSTREAM_PREFIX).removesuffix("__*")
    if server_only and SEPARATOR not in server_only and "*" not in server_only:
        return Rule(rule, server=server_only)
    try:
        split_name(rule)
    except InvalidName as problem:
        raise BrokenRule(f"rule {text!r}: {problem}") from None
    if "*" in rule:
        raise BrokenRule(f"rule {text!r}: `*` stands only for all tools of a server, e.g. mcp__github__*")
    return Rule(rule, tool=rule)


@dataclass(frozen=True)
class RuleSet:
    """All rules in force. Order inside a list does not matter; deny beats ask beats allow."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = field(default=())

    @classmethod
    def parse(cls, *, allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = ()) -> RuleSet:
        """Raises `BrokenRule` for the first rule that cannot be understood."""
        return cls(*(tuple(parse_rule(text) for text in texts) for texts in (allow, ask, deny)))

    def denying_all_of(self, server: str) -> str:
        """The text of a rule that denies everything of an upstream, resources too; empty if none does."""
        return next((rule.text for rule in self.deny if rule.server == server), "")
