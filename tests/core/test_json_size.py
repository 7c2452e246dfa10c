"""How long the JSON of a value is, and its text. ISO-1."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core.json_values import dumped_in_steps, is_longer

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
