"""A rule as a condition of something else, e.g. the `if` of a hook: whether it is about a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from goat_mcp.calls.permissions.call import Call
from goat_mcp.calls.permissions.rule import Rule, parse_rule
from goat_mcp.calls.permissions.rules import families_of
from goat_mcp.calls.permissions.specifiers import CommandSpecifier, PathSpecifier
from goat_mcp.core.spec import ToolSpec

_PATHS = ("file_path", "notebook_path", "path")


class RuleConditions:
    """Implements `hooks.command.RuleMatch`. `roots` are the workspace's directories, `real_path` follows links.

    As with a rule that asks, some part of a call is enough. Where a script cannot be seen through, it is taken to be
    meant: so does Claude Code, whose hooks say `if` in this way.
    """

    def __init__(self, roots: Callable[[], Sequence[str]], real_path: Callable[[str], str]) -> None:
        self._roots = roots
        self._real_path = real_path
        self._parsed: Callable[[str], Rule] = lru_cache(maxsize=1000)(_parsed)

    def __call__(self, rule: str, spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
        """Raises `BrokenRule`."""
        parsed = self._parsed(rule)
        is_about_files = parsed.specifier is None or isinstance(parsed.specifier, PathSpecifier)
        is_of_family = is_about_files and parsed.tool in families_of(spec.rule_name)
        if not parsed.names(spec.rule_name) and not is_of_family:
            return False
        asked = tuple(str(arguments[name]) for name in _PATHS if name in arguments)
        real = tuple(map(self._real_path, asked))
        call = Call(spec, arguments, asked, real, roots=tuple(self._roots()))
        if isinstance(parsed.specifier, CommandSpecifier) and any(one.hidden for one in call.scripts):
            return True
        return parsed.hits(call)


def _parsed(text: str) -> Rule:
    return parse_rule(text, may_name_all=True)
