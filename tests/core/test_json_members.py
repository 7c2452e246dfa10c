"""What members of foreign JSON are read as, whatever was sent."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.core.json_values import count, items, mapping, mappings


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
