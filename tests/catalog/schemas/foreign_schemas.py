"""Schemas as strangers write them, and arguments that fit them, for hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "kind", "filter[]", "ü", "x y", "a" * 70)
VALUES: tuple[Any, ...] = ("x", "y", "", 0, 1, 1.5, -2, True, False, None)

names = st.sampled_from(NAMES)
scalars = st.sampled_from(VALUES)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(names, values, max_size=4)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)

_references = st.sampled_from(
    ["#/$defs/d1", "#/$defs/d2", "#", "#/properties/a", "#/anyOf/0", "#/$defs/none", "http://x/y"]
)
_types = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])
_kinds = _types | st.lists(_types, min_size=1, max_size=3, unique=True)


def _schemas(inner: st.SearchStrategy[Any], references: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": _kinds,
            "properties": st.dictionaries(names, inner, max_size=3),
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "x", "_"]), inner, max_size=1),
            "propertyNames": st.fixed_dictionaries({"maxLength": st.sampled_from([1, 4, 80])}),
            "dependentRequired": st.dictionaries(names, st.lists(names, max_size=1), max_size=1),
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(0, 3),
            "unevaluatedProperties": st.just(False),
            "items": inner,
            "prefixItems": several,
            "minItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "contains": inner,
            "maxContains": st.integers(1, 2),
            "enum": st.lists(values, min_size=1, max_size=3),
            "const": values,
            "minimum": st.integers(-1, 1),
            "exclusiveMaximum": st.integers(-1, 3),
            "minLength": st.integers(0, 2),
            "pattern": st.sampled_from(["^x", "y"]),
            "format": st.sampled_from(["date-time", "odd"]),
            "oneOf": several,
            "anyOf": several,
            "allOf": several,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "$ref": references,
            "default": values,
            "description": st.just("D"),
        },
    )


def _some_of(schema: dict[str, Any], keep: list[int]) -> dict[str, Any]:
    keys = list(schema)
    return {key: schema[key] for index, key in enumerate(keys) if index in keep}


def parts(references: st.SearchStrategy[str] = _references) -> st.SearchStrategy[Any]:
    leaves = (
        st.booleans()
        | st.fixed_dictionaries({}, optional={"type": _kinds, "const": scalars})
        | st.builds(dict[str, Any])
    )
    return st.recursive(
        leaves,
        lambda inner: st.builds(
            _some_of, _schemas(inner, references), st.lists(st.integers(0, 34), min_size=1, max_size=6)
        ),
        max_leaves=8,
    )


def _root(root: dict[str, Any], first: Any, second: Any) -> dict[str, Any]:
    return {**root, "$defs": {"d1": first, "d2": second}}


roots = st.builds(
    _root,
    st.builds(_some_of, _schemas(parts(), _references), st.lists(st.integers(0, 34), min_size=2, max_size=8)),
    parts(),
    parts(),
)
