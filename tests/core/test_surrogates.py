"""Halves of surrogate pairs, made visible."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core.surrogates import escaped_in_steps, with_escaped_surrogates

TEXTS = st.sampled_from(["", "a", "é", "\ud800", "x\udfff", "\U0001f600"])
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def ended(value: Any) -> tuple[Any, int]:
    """What it becomes, and in how many steps."""
    steps = escaped_in_steps(value)
    number = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value, number
        number += 1


@given(VALUES)
def test_it_is_the_same_in_steps_as_in_one_go(value: Any) -> None:
    expected = repr(with_escaped_surrogates(copy.deepcopy(value)))

    assert repr(ended(value)[0]) == expected


@pytest.mark.parametrize("many", [["\ud800"] * 5_000, {f"\ud800{number}": number for number in range(5_000)}])
def test_others_have_their_turns_meanwhile(many: Any) -> None:
    assert ended(many)[1] == 5
