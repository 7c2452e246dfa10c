"""What one entry says of its server that another entry with the same launch does not: limits above all.

What they start or call is compared in `merging`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

TOOL_LIMITS = ("enabled_tools", "disabled_tools")
_LAUNCH = frozenset({"command", "args", "cwd", "url", "env", "headers"})


def lost_options(kept: Mapping[str, Any], dropped: Mapping[str, Any]) -> list[str]:
    """The keys of `dropped` that would not count any more if only `kept` were there.

    A stricter list of tools is no loss.
    """
    return [
        key
        for key, value in dropped.items()
        if key not in _LAUNCH and kept.get(key) != value and not _is_kept(key, kept, dropped)
    ]


def _is_kept(key: str, kept: Mapping[str, Any], dropped: Mapping[str, Any]) -> bool:
    shown, hidden = _names(kept, "enabled_tools"), _names(kept, "disabled_tools") or set[str]()
    named = _names(dropped, key)
    if key == "disabled":
        return dropped[key] is False and "disabled" not in kept
    if key not in TOOL_LIMITS or named is None:
        return False
    if key == "disabled_tools":
        return all(tool in hidden or (shown is not None and tool not in shown) for tool in named)
    return shown is not None and shown - hidden <= named


def _names(entry: Mapping[str, Any], key: str) -> set[str] | None:
    value = entry.get(key)
    return {str(item) for item in cast("list[Any]", value)} if isinstance(value, list) else None
