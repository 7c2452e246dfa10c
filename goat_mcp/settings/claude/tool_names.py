"""Which tools a rule of Claude Code may name that do not exist here. New ones appear there all the time."""

from __future__ import annotations

import re

from goat_mcp.catalog.builtin_contracts import builtin_names
from goat_mcp.core.names import NAME_ALIASES, UPSTREAM_PREFIX

_TOOL = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)\s*(?:\(|\Z)")


def unknown_tool(rule: str) -> str | None:
    """The tool a rule names, where it is none of ours. None for any other rule, a broken one too."""
    match = _TOOL.match(rule)
    if match is None:
        return None
    tool = match[1]
    if tool.startswith(UPSTREAM_PREFIX) or tool in builtin_names() or tool in NAME_ALIASES:
        return None
    return tool
