"""Progress values rise, whatever a tool reports."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core.progress import RisingProgress

pytestmark = pytest.mark.anyio


@given(st.lists(st.floats(max_value=1e300), min_size=1, max_size=20))
async def test_each_value_is_above_the_one_before_and_is_a_number_that_json_has(reported: list[float]) -> None:
    values: list[float] = []

    async def note(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        values.append(done)

    rising = RisingProgress(note)
    for done in reported:
        await rising(done)

    assert len(values) == len(reported)
    assert all(before < after for before, after in zip([-1.0, *values], values, strict=False))
    assert all(map(math.isfinite, values))


async def test_values_that_rise_pass_as_they_are_and_others_are_lifted_a_little() -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        seen.append((done, total, message))

    rising = RisingProgress(note)
    for done, message in ((0, "started"), (0, "none yet"), (50, "half"), (20, "back"), (100, "all")):
        await rising(done, 100, message)

    values = [done for done, _, _ in seen]
    assert values == [0, pytest.approx(0, abs=1e-5), 50, pytest.approx(50, abs=1e-5), 100]
    assert [message for _, _, message in seen] == ["started", "none yet", "half", "back", "all"]
