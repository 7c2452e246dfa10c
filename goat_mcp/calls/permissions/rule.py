"""One rule a user writes: the tool, or the calls of a tool, that it is about.

One that is not understood stops the start (R-PERM-7): a rule that is silently ignored protects nobody.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from goat_mcp.calls.permissions.call import Call
from goat_mcp.calls.permissions.specifiers import Specifier, parse_specifier
from goat_mcp.calls.permissions.text_pattern import text_pattern
from goat_mcp.core.names import (
    BUILTIN_NAMES,
    META_NAMES,
    NAME_ALIASES,
    SEPARATOR,
    UPSTREAM_PREFIX,
    InvalidName,
    split_name,
)

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_WITH_BRACKETS = re.compile(r"([^()]*)\((.*)\)\Z", re.DOTALL)


class BrokenRule(ValueError):
    """A permission rule that cannot be understood; the text names the rule and what to write instead."""


@dataclass(frozen=True)
class Rule:
    """One parsed rule. `text` is what the user wrote and what decisions quote; `origin` is where, `FILE:LINE`.

    It is about one `tool`, all tools of a `server`, or those whose name `fits`; with a specifier, about some calls.
    One that a person granted for a command allows it where they were asked about it only, in `directory`: `make` is
    another program elsewhere. `blocks`: it stands in `bash.blocked`.
    """

    text: str
    tool: str = ""
    server: str = ""
    fits: Callable[[str], object] | None = None
    specifier: Specifier | None = None
    origin: str = ""
    directory: str = ""
    blocks: bool = False

    def names(self, rule_name: str) -> bool:
        """Whether the rule is about this tool, or some calls of it."""
        if self.tool:
            return rule_name == self.tool
        if self.server:
            return rule_name.startswith(f"{UPSTREAM_PREFIX}{self.server}{SEPARATOR}")
        return self.fits is not None and self.fits(rule_name) is not None

    def hits(self, call: Call) -> bool:
        """For deny and ask: whether some part of the call is meant."""
        return self.specifier is None or self.specifier.hits(call)

    def covers(self, call: Call) -> bool:
        """For allow: whether the whole call is meant."""
        return self.specifier is None or self.specifier.covers(call)


def parse_rule(text: str, *, origin: str = "", base: str = "", may_name_all: bool = False) -> Rule:
    """`base` is the directory that `/path` in it is relative to; empty: the workspace. `may_name_all`: whether `*` may
    stand for every tool, which only denying and asking may. Raises `BrokenRule`."""
    rule = text.strip()
    quoted = f"rule {text[:200]!r}" + (f" ({origin})" if origin else "")
    name, specifier_text = rule, None
    if "(" in rule or ")" in rule:
        found = _WITH_BRACKETS.match(rule)
        if found is None:
            raise BrokenRule(f"{quoted}: the brackets do not close; write e.g. Bash(npm run *)")
        name, specifier_text = found[1].strip(), found[2].strip()
        if not specifier_text:
            raise BrokenRule(f"{quoted}: nothing stands in the brackets; write the tool's name alone to mean all of it")
    try:
        parsed = replace(_parse_name(name, may_name_all), text=rule, origin=origin)
        if specifier_text is None or specifier_text == "*":
            return parsed
        if not parsed.tool:
            raise ValueError("a pattern in brackets wants one tool's whole name before it")
        return replace(parsed, specifier=parse_specifier(parsed.tool, specifier_text, base))
    except ValueError as problem:
        raise BrokenRule(f"{quoted}: {problem}") from None


def _parse_name(name: str, may_name_all: bool) -> Rule:
    if not name.startswith(UPSTREAM_PREFIX):
        if "*" in name and may_name_all:
            return Rule(name, fits=text_pattern(name))
        if not _PLAIN_NAME.match(name):
            raise ValueError("this is no tool name; write e.g. Bash, Edit(src/**), mcp__github or mcp__github__search")
        tool = NAME_ALIASES.get(name, name)
        if SEPARATOR not in tool and tool not in (*BUILTIN_NAMES, *META_NAMES):
            near = difflib.get_close_matches(tool, BUILTIN_NAMES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"tools are {', '.join(BUILTIN_NAMES)} and mcp__SERVER__TOOL"
            raise ValueError(f"names no tool; {hint}")
        return Rule(name, tool=tool)
    server_only = name.removeprefix(UPSTREAM_PREFIX).removesuffix("__*")
    if server_only and SEPARATOR not in server_only and "*" not in server_only:
        return Rule(name, server=server_only)
    if name == f"{UPSTREAM_PREFIX}*" and may_name_all:
        return Rule(name, fits=text_pattern(name))
    try:
        split = split_name(name)
    except InvalidName as problem:
        raise ValueError(str(problem)) from None
    if "*" in split.server:
        raise ValueError("`*` stands only for tools of a server you name, e.g. mcp__github__get_*")
    return Rule(name, fits=text_pattern(name)) if "*" in name else Rule(name, tool=name)
