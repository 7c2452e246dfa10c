"""How long the JSON of a value is, its text (ISO-1), and what members of foreign JSON are read as."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core.json_values import count, dumped_in_steps, is_longer, items, mapping, mappings

TEXTS = st.sampled_from(["", "a", "é", "\ud800", '"', "x" * 30])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=30,
)


@given(VALUES, st.integers(-3, 3))
def test_it_is_told_to_the_character(value: Any, beside: int) -> None:
    size = len(json.dumps(value, ensure_ascii=False))

    assert is_longer(value, size + beside) == (beside < 0)


@pytest.mark.parametrize(
    "text",
    ["[1]", "[[1]]", "[[], []]", "[[[[[]]]]]", '{"": 1}', '{"": {"": []}}', "[[1], [1]]", "1", '""', "[[[1], 1], 1]"],
)
def test_what_has_as_many_parts_as_its_characters_allow_is_not_taken_for_longer(text: str) -> None:
    assert not is_longer(json.loads(text), len(text))


def test_of_a_value_with_very_many_parts_no_more_is_looked_at_than_tells_that() -> None:
    assert is_longer([object()] * 1_000, 1_000)


@given(VALUES)
def test_the_text_is_the_same_in_steps(value: Any) -> None:
    assert dumped_in_steps(value) == json.dumps(value, ensure_ascii=False)


def test_what_lies_deep_is_written_too() -> None:
    deep: Any = 1
    for _ in range(600):
        deep = [deep]

    assert dumped_in_steps(deep) == "[" * 600 + "1" + "]" * 600


@pytest.mark.parametrize("sent", [None, 1, "text", [{"a": 1}], True])
def test_what_is_no_object_is_an_empty_one(sent: Any) -> None:
    assert (mapping({"a": 1}), mapping(sent)) == ({"a": 1}, {})


@pytest.mark.parametrize("sent", [None, 1, "text", {"a": 1}])
def test_what_is_no_list_is_an_empty_one(sent: Any) -> None:
    assert (items([1, "b"]), items(sent), mappings(sent)) == ([1, "b"], [], [])


def test_of_a_list_of_objects_other_things_are_left_out() -> None:
    assert mappings([{"a": 1}, None, [], {}]) == [{"a": 1}, {}]


@pytest.mark.parametrize(
    ("sent", "counted"), [(0, 0), (12, 12), (-1, None), (True, None), (1.0, None), ("1", None), (None, None)]
)
def test_a_count_is_a_whole_number_from_0_on(sent: Any, counted: int | None) -> None:
    assert count(sent) == counted
