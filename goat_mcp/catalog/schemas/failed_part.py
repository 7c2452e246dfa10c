"""The part of a schema that a call needs that did not fit it, so that nobody has to ask for the whole one first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from goat_mcp.catalog.signatures import short_type

MAX_PART_CHARS = 1_200
"""300 tokens of four characters."""
_DESCRIPTION_CHARS = 160
_SAYS_NOTHING = frozenset({"title", "examples", "$comment"})
_MAX_NODES = 200


def failed_part(schema: Mapping[str, Any], fields: Iterable[str]) -> str:
    """The schemas of these fields by name as compact JSON, the short type of one that is too long or refers elsewhere.

    Empty if the schema names none of them. What does not fit is counted.
    """
    properties: Any = schema.get("properties")
    known: Mapping[str, Any] = cast("Mapping[str, Any]", properties) if isinstance(properties, Mapping) else {}
    names = [name for name in dict.fromkeys(fields) if name in known]
    shown: list[str] = []
    left = MAX_PART_CHARS - len('{, "...": "+10000 more"}')
    for name in names:
        nodes_left = [_MAX_NODES]
        part = f"{_json(name)}:{_json(_trimmed(known[name], nodes_left))}"
        if nodes_left[0] < 0 or len(part) > left // 2 or '"$ref"' in part:
            part = f"{_json(name)}:{_json(short_type(known[name], schema))}"
        left -= len(part) + 1
        if left < 0:
            break
        shown.append(part)
    if more := len(names) - len(shown):
        shown.append(f'"...":"+{more} more"')
    return "{" + ",".join(shown) + "}" if shown else ""


def _trimmed(node: Any, nodes_left: list[int]) -> Any:
    """Without what says nothing of the value, and with short descriptions. A large one is cut off: it is not shown."""
    nodes_left[0] -= 1
    if nodes_left[0] < 0:
        return None
    if isinstance(node, str):
        return node[:MAX_PART_CHARS]
    if isinstance(node, list):
        return [_trimmed(one, nodes_left) for one in cast("list[Any]", node)[:_MAX_NODES]]
    if not isinstance(node, Mapping):
        return node
    kept: dict[str, Any] = {}
    for key, value in cast("Mapping[str, Any]", node).items():
        if nodes_left[0] < 0:
            break
        if key in _SAYS_NOTHING and not isinstance(value, Mapping):
            continue
        if key == "description" and isinstance(value, str):
            kept[key] = _short(value)
        else:
            kept[key] = _trimmed(value, nodes_left)
    return kept


def _short(text: str) -> str:
    return text if len(text) <= _DESCRIPTION_CHARS else text[: _DESCRIPTION_CHARS - 3] + "..."


def _json(value: Any) -> str:
    """On one line: what stands in a schema cannot begin a line of ours."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text if text.isprintable() else "".join(one if one.isprintable() else " " for one in text)
