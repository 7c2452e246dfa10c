"""What fits a plain schema is seen without the validation library; in nothing may it differ from that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema
from goat_mcp.catalog.schemas.flat_schema import certain_fit

_object: Any = st.fixed_dictionaries  # typed for members of one type only
_NAMES = st.sampled_from(["a", "b", "c"])
_VALUES = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.5, 1.0]), st.text(max_size=2))
_TYPES: list[Any] = ["string", "boolean", "integer", "number", "null", "array", ["string", "null"]]
_FIELDS: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    _object({}, optional={"type": st.sampled_from(_TYPES), "description": st.just("d")}),
    _object({"type": st.just("string")}, optional={"minLength": st.just(1), "enum": st.just(["x"])}),
)
_SCHEMAS: st.SearchStrategy[Any] = _object(
    {},
    optional={
        "type": st.sampled_from(["object", "string", ["object", "null"]]),
        "properties": st.dictionaries(_NAMES, _FIELDS, max_size=3),
        "required": st.lists(_NAMES, max_size=2, unique=True),
        "additionalProperties": st.one_of(st.booleans(), st.just({"type": "string"})),
        "minProperties": st.just(1),
    },
)


@given(_SCHEMAS, st.dictionaries(_NAMES, _VALUES, max_size=3))
def test_whatever_certainly_fits_has_no_mismatch(schema: dict[str, Any], value: dict[str, Any]) -> None:
    if certain_fit(schema)(value):
        assert BoundedSchema(schema).mismatch(value) is None


ECHO = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to say"},
        "times": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "size": {"type": "number", "maximum": 3},
    },
    "required": ["text"],
}


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"text": "hello"}, True),
        ({"text": "hello", "times": 2}, True),
        ({"text": "hello", "more": [1]}, True),
        ({}, False),
        ({"text": 5}, False),
        ({"text": "hello", "times": True}, False),
        ({"text": "hello", "tags": ["a"]}, False),  # the library looks at it
        ({"text": "hello", "size": 2}, False),
        ([], False),
    ],
)
def test_texts_and_numbers_are_plain(value: Any, fits: bool) -> None:
    assert certain_fit(ECHO)(value) is fits


def test_a_closed_object_has_no_other_members() -> None:
    closed = certain_fit({**ECHO, "additionalProperties": False})

    assert closed({"text": "hello"})
    assert not closed({"text": "hello", "more": 1})


@pytest.mark.parametrize("schema", [True, {}, {"type": "string"}, {**ECHO, "allOf": []}, {**ECHO, "required": "text"}])
def test_a_schema_that_says_more_is_for_the_library(schema: Any) -> None:
    assert not certain_fit(schema)({"text": "hello"})
