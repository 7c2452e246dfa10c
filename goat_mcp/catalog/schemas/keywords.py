"""What each keyword of JSON Schema holds, and whether a value has that form.

One malformed keyword makes a model's API refuse the whole request, so it is left out instead (SCH-2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

ONE = frozenset(
    {
        *("items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains"),
        *("propertyNames", "unevaluatedProperties", "unevaluatedItems", "contentSchema"),
    }
)
"""Hold one schema."""
SEVERAL = frozenset({"oneOf", "anyOf", "allOf", "prefixItems"})
"""Hold a list of schemas."""
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Hold schemas by name."""
ANNOTATIONS = frozenset(
    {
        *("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"),
        *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs"),
        *("definitions", "contentMediaType", "contentEncoding", "contentSchema", "format"),
    }
)
"""Allow and forbid nothing; a `format` is one too, unless a validator is told to check it."""
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_TYPES = frozenset(TYPES)
TYPES_OF: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties"),
        frozenset({"object"}),
    ),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems"), frozenset({"array"})),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), frozenset({"string"})),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), frozenset({"number", "integer"})),
}
"""The types of value that a keyword says something of."""


def is_validating(keyword: str) -> bool:
    """Whether leaving the keyword out may allow more."""
    return keyword in _FORMS or keyword in ONE or keyword in SEVERAL or keyword in ("properties", "patternProperties")


def is_well_formed(keyword: str, value: Any) -> bool:
    """Whether `value` is what the keyword wants, as far as one can tell without looking into schemas in it."""
    form = _FORMS.get(keyword)
    return form is None or form(value)


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _are_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(cast("list[Any]", value)) and all(map(_is_schema, cast("list[Any]", value)))


def _is_type(value: Any) -> bool:
    if isinstance(value, str):
        return value in _TYPES
    if not isinstance(value, list) or not value:
        return False
    kinds = cast("list[Any]", value)
    return all(isinstance(kind, str) and kind in _TYPES for kind in kinds) and len(set(kinds)) == len(kinds)


def _are_texts(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    texts = cast("list[Any]", value)
    return all(isinstance(text, str) for text in texts) and len(set(texts)) == len(texts)


def _are_texts_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_are_texts, cast("dict[str, Any]", value).values()))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and (isinstance(value, int) or value.is_integer())


_FORMS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(ONE, _is_schema),
    **dict.fromkeys(SEVERAL, _are_schemas),
    **dict.fromkeys(NAMED, _is(dict)),
    "items": lambda value: _is_schema(value) or _are_schemas(value),
    "dependencies": _is(dict),
    "dependentRequired": _are_texts_by_name,
    "type": _is_type,
    "required": _are_texts,
    "enum": _is(list),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(
        (
            *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
            *("minContains", "maxContains"),
        ),
        _is_count,
    ),
    "uniqueItems": _is(bool),
    **dict.fromkeys(("pattern", "format", "title", "description", "$ref", "$schema", "$id", "$anchor"), _is(str)),
    **dict.fromkeys(("$dynamicRef", "$dynamicAnchor", "$comment"), _is(str)),
}
