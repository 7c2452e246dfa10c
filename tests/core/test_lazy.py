from __future__ import annotations

import pytest

from goat_mcp.core.lazy import Lazy


def test_a_part_is_made_once_and_only_when_it_is_needed() -> None:
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    part = Lazy(make)
    before = part.made

    first, second = part(), part()

    assert before is None
    assert first is second is part.made
    assert len(made) == 1


def test_a_part_that_could_not_be_made_is_tried_again() -> None:
    problems = [ValueError("not yet")]

    def make() -> str:
        if problems:
            raise problems.pop()
        return "made"

    part = Lazy(make)

    with pytest.raises(ValueError, match="not yet"):
        part()
    assert part.made is None
    assert part() == "made"


def test_none_and_empty_values_count_as_made() -> None:
    calls: list[None] = []
    part = Lazy(lambda: calls.append(None))

    assert part() is None
    assert part() is None
    assert len(calls) == 1
