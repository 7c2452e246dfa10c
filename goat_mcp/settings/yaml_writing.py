"""Plain values written as YAML, so that readers of version 1.1 and of 1.2 take them alike."""

from __future__ import annotations

import json
import re
from typing import Any, cast

_PLAIN = re.compile(r"[A-Za-z_/](?:[A-Za-z0-9_./@%+=()*~^$-]|:(?=[^\s:])| (?=[^\s#]))*\Z")
"""Texts that need no quotes: nothing that either version, or a line's place, gives another meaning."""
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_UNPRINTABLE = re.compile("[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def yaml_lines(value: dict[str, Any] | list[Any], indent: int, *, unit: int, dash: int) -> list[str]:
    """A mapping or list that is not empty, over several lines. `dash`: how far lists are indented below their key."""
    blanks = " " * indent
    lines: list[str] = []
    if isinstance(value, list):
        for item in value:
            first, *rest = _lines_of_item(item, indent + 2, unit=unit, dash=dash)
            lines += [f"{blanks}- {first.lstrip(' ')}", *rest]
        return lines
    for key, child in value.items():
        name = f"{blanks}{_scalar(key, plain=True)}:"
        if isinstance(child, dict | list) and child:
            further = dash if isinstance(child, list) else unit
            below = cast("dict[str, Any] | list[Any]", child)
            lines += [name, *yaml_lines(below, indent + further, unit=unit, dash=dash)]
        else:
            lines.append(f"{name} {flow_yaml(child, plain=True)}")
    return lines


def _lines_of_item(item: Any, indent: int, *, unit: int, dash: int) -> list[str]:
    if isinstance(item, dict | list) and item:
        return yaml_lines(cast("dict[str, Any] | list[Any]", item), indent, unit=unit, dash=dash)
    return [flow_yaml(item, plain=True)]


def flow_yaml(value: Any, *, plain: bool = False) -> str:
    """On one line. `plain`: a text without quotes if it needs none."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return "{" + ", ".join(f"{_scalar(key)}: {flow_yaml(child)}" for key, child in fields) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow_yaml(item) for item in cast("list[Any]", value)) + "]"
    return _scalar(value, plain=plain)


def _scalar(value: Any, *, plain: bool = False) -> str:
    if plain and isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _WORDS:
        return value
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
