"""What is shown of a tool that was found: enough to call most tools, in a line or two."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from goat_mcp.core.errors import cut_middle
from goat_mcp.core.spec import ToolSpec

_SENTENCE_CHARS = 200
_PARAMETERS_SHOWN = 12
_PARAMETER_CHARS = 60
_VALUES_SHOWN = 6
_END = re.compile(r"[.!?。](\s|\Z)|\n\s*\n")
_SHORT = {"string": "str", "integer": "int", "number": "number", "boolean": "bool"}


def found_tool(spec: ToolSpec, server: str) -> dict[str, Any]:
    """As an object: name, server, first sentence, parameters with their types (`?`: optional), risk."""
    return {
        "name": spec.name,
        "server": server,
        "description": first_sentence(spec.description or spec.title),
        "parameters": parameters(spec.input_schema),
        "risk": spec.risk.name.lower(),
    }


def in_words(found: Mapping[str, Any]) -> str:
    """The same as text for a model."""
    inside = ", ".join(f"{name}: {kind}" for name, kind in found["parameters"].items())
    return f"{found['name']}({inside})\n  {found['description']} [{found['server']}, risk {found['risk']}]"


def first_sentence(text: str) -> str:
    """On one line, cut where it is long."""
    end = _END.search(text.strip())
    sentence = text.strip()[: end.start() + 1] if end is not None else text.strip()
    return cut_middle(" ".join(sentence.split()), _SENTENCE_CHARS)


def parameters(schema: Mapping[str, Any]) -> dict[str, str]:
    """The type of each parameter by name; a `?` at the name's end marks an optional one, which come last."""
    properties: Any = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    known = cast("dict[str, Any]", properties)
    required: Any = schema.get("required")
    wanted = [name for name in known if isinstance(required, list) and name in required]
    optional = [name for name in known if name not in wanted]
    named = [*((name, name) for name in wanted), *((name, f"{name}?") for name in optional)]
    shown = {cut_middle(shown_as, _PARAMETER_CHARS): _kind(known[name]) for name, shown_as in named[:_PARAMETERS_SHOWN]}
    if len(named) > _PARAMETERS_SHOWN:
        shown["..."] = f"{len(named) - _PARAMETERS_SHOWN} more"
    return shown


def _kind(schema: Any) -> str:
    """A type in a few characters: `str`, `int[]`, `open|closed`."""
    if not isinstance(schema, dict):
        return "any"
    stated = cast("dict[str, Any]", schema)
    values: Any = stated.get("enum")
    if isinstance(values, list) and values and all(isinstance(one, str) for one in cast("list[Any]", values)):
        texts = cast("list[str]", values)
        more = "|..." if len(texts) > _VALUES_SHOWN else ""
        return cut_middle("|".join(texts[:_VALUES_SHOWN]), _PARAMETER_CHARS) + more
    kind: Any = stated.get("type")
    if isinstance(kind, list):
        return "|".join(_named(one) for one in cast("list[Any]", kind) if one != "null") or "any"
    if kind == "array":
        return f"{_kind(stated.get('items'))}[]"
    arms: Any = stated.get("anyOf") or stated.get("oneOf")
    if kind is None and isinstance(arms, list):
        kinds = [_kind(arm) for arm in cast("list[Any]", arms)[:_VALUES_SHOWN]]
        return "|".join(dict.fromkeys(one for one in kinds if one != "null")) or "any"
    return _named(kind)


def _named(kind: Any) -> str:
    return _SHORT.get(kind, kind) if isinstance(kind, str) else "any"
