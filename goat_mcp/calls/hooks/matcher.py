"""The `matcher` of a group of hooks: which tools, agent types or ways of starting it is about.

Source: Claude Code's hooks reference, "Matcher patterns". Names are canonical; those by which Claude Code knows a
built-in tool match as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from goat_mcp.core.names import CLAUDE_CODE_ALIASES, NAME_ALIASES, SEPARATOR, UPSTREAM_PREFIX

_NAMES_ONLY = re.compile(r"[A-Za-z0-9_\- ,|]*\Z")
_JS_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")


class BrokenMatcher(ValueError):
    """A matcher that is no regular expression."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """`names` are exact, a name `mcp__server__` stands for all tools of a server; without either it matches all."""

    names: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    @classmethod
    def parse(cls, text: str, *, whole_servers: bool = True) -> Matcher:
        """`whole_servers`: a bare `mcp__server` means all its tools, as in permission rules. In Claude Code it names
        none. Raises `BrokenMatcher`.
        """
        if text in ("", "*"):
            return cls()
        if _NAMES_ONLY.match(text):
            names = [name.strip() for name in re.split(r"[|,]", text)]
            known = {known for name in names if name for known in (name, NAME_ALIASES.get(name, name))}
            return cls(frozenset(_server_prefix(name) if whole_servers else name for name in known))
        try:
            return cls(pattern=re.compile(_JS_NAMED_GROUP.sub("(?P<", text), re.ASCII))
        except re.error as broken:
            raise BrokenMatcher(f"matcher {text!r} is no regular expression: {broken}") from None

    def matches(self, name: str) -> bool:
        """Whether a tool's canonical name, or what else the event is told apart by, is meant."""
        if self.pattern is not None:
            aliases = (alias for alias, tool in CLAUDE_CODE_ALIASES.items() if tool == name)
            return any(self.pattern.search(one) for one in (name, *aliases))
        if not self.names or name in self.names:
            return True
        return name.startswith(UPSTREAM_PREFIX) and _server_of(name) in self.names


def _server_prefix(name: str) -> str:
    """`mcp__server` -> `mcp__server__`; any other name as it is."""
    server = name.removeprefix(UPSTREAM_PREFIX)
    is_server = name.startswith(UPSTREAM_PREFIX) and server and SEPARATOR not in server
    return name + SEPARATOR if is_server else name


def _server_of(name: str) -> str:
    return UPSTREAM_PREFIX + name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)[0] + SEPARATOR
