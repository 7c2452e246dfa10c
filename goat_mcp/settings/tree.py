"""Settings as a tree of dictionaries, before anything has checked them: values are put in by key, trees over trees.

Which trees there are, and which lies over which, is in `loading`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

from goat_mcp.core.spec import DEFAULT_TOOLSETS
from goat_mcp.settings.settings import BrokenSettings, setting_keys

_ADD_UP = (
    *("permissions.allow", "permissions.ask", "permissions.deny", "catalog.deny", "bash.blocked"),
    *("hooks", "claude_settings", "extensions"),
)
"""Lists in which both the user's and a trusted project's entries count. All else a project's value replaces."""

_ON_WITHOUT_A_WORD = {"catalog.toolsets": DEFAULT_TOOLSETS}


def keys_in(value: Any, key: str = "") -> list[str]:
    """The keys that `value`, the tree under `key`, has values for. A dictionary below a setting's key is its value."""
    if not isinstance(value, dict) or (key and key in setting_keys()):
        return [key]
    below = cast("dict[Any, Any]", value).items()
    return [found for name, inner in below for found in keys_in(inner, f"{key}.{name}" if key else str(name))]


def place(tree: dict[str, Any], key: str, text: str, origin: str) -> Any:
    """Put a value where its key says; it is read as JSON where it parses, else as text. Returns the value."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = text
    *levels, last = key.split(".")
    for level in levels:
        below = tree.setdefault(level, {})
        if not isinstance(below, dict):
            raise BrokenSettings(f"{origin}: {level} is set to {below!r} already and has no levels")
        tree = cast("dict[str, Any]", below)
    tree[last] = value
    return value


def append(tree: dict[str, Any], key: str, names: Sequence[str]) -> None:
    """Add to a list: to what stands there, or else to what holds without it."""
    part, _, last = key.partition(".")
    below = tree.setdefault(part, {})
    if isinstance(below, dict):  # anything else is told as the broken setting that it is
        given = cast("dict[str, Any]", below)
        before = as_list(given.get(last, _ON_WITHOUT_A_WORD.get(key)))
        given[last] = [*before, *(name for name in names if name not in before)]


def as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else [value]


def layer(tree: dict[str, Any], over: Mapping[str, Any], above: str = "") -> None:
    """Put a project's settings over the user's. Rules and hooks of both hold: trusting a project lifts no denial."""
    for name, value in over.items():
        key = f"{above}.{name}" if above else name
        below = tree.get(name)
        if isinstance(value, dict) and isinstance(below, dict):
            layer(cast("dict[str, Any]", below), cast("dict[str, Any]", value), key)
        elif key.startswith(_ADD_UP):
            tree[name] = [*as_list(below), *as_list(value)]
        else:
            tree[name] = deepcopy(cast("Any", value))


def merge(tree: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        below = tree.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            merge(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            tree[key] = value
