"""What a value should have been, in our words: of an error of the library that checks models (pydantic)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goat_mcp.core.coercion import shown_value

_WANTED: Mapping[str, str] = {
    "string_type": "text",
    "string_unicode": "text",
    "string_pattern_mismatch": "text that matches {pattern}",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number that is not infinite",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "path_type": "a path",
    "none_required": "nothing",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
}
_LENGTHS: Mapping[str, str] = {
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} items",
    "too_long": "at most {max_length} items",
}


def words_of(error: Mapping[str, Any]) -> str:
    """One of `ValidationError.errors()`, without its place, e.g. `wants at most 12 characters; got 31`."""
    kind: str = error["type"]
    demand = demand_of(error)
    if not demand.startswith("wants ") or kind == "value_error":
        return demand
    given = len(error["input"]) if kind in _LENGTHS else shown_value(error["input"])
    return f"{demand}; got {given}"


def demand_of(error: Mapping[str, Any]) -> str:
    """The same without the value that came, which may be a secret. A `ValueError` of a check of ours keeps its text."""
    kind: str = error["type"]
    if kind == "value_error":
        return str(error["msg"]).removeprefix("Value error, ")
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return "is an unknown field"
    bounds: Mapping[str, Any] = error.get("ctx", {})
    if bounds.get("min_length") == 1:
        return "wants at least one item" if kind == "too_short" else "is empty"
    wanted = _LENGTHS.get(kind) or _WANTED.get(kind, "another value")
    whole = {name: int(bound) for name, bound in bounds.items() if isinstance(bound, float) and bound.is_integer()}
    return f"wants {wanted.format_map({**bounds, **whole})}"
