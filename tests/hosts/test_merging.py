"""Servers put among those that our file has. CFG-2."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.hosts.merging import Merged, Merging, Outcome
from goat_mcp.hosts.translate import Translated


def test_a_launch_that_is_disabled_in_our_file_stays_with_its_host() -> None:
    merging = Merging({"mine": {"command": "srv", "disabled": True}})

    assert merging.add(Translated("theirs", {"command": "srv"}), "cursor") == Merged(
        "theirs",
        Outcome.KEPT,
        told=("mine in your file is the same launch, with disabled: true; take that out there to use it",),
    )
    assert merging.add(Translated("off", {"command": "srv", "disabled": True}), "cursor").outcome is Outcome.PRESENT
    assert merging.new == {}


@pytest.mark.parametrize("broken", [None, 3, [], {"command": "srv", "env": ["A"]}, {"command": "srv", "headers": 1}])
def test_a_broken_entry_of_ours_is_no_twin_and_keeps_its_name(broken: Any) -> None:
    merged = Merging({"x": broken}).add(Translated("x", {"command": "srv", "env": {"A": "1"}}), "zed")

    assert (merged.outcome, merged.to) == (Outcome.IMPORTED, "x-zed")


def test_of_entries_with_one_name_each_gets_its_own() -> None:
    merging = Merging({})
    entries = [{"command": f"srv{number}"} for number in range(4)]

    added = [merging.add(Translated("x", entry), "zed").to for entry in [*entries, entries[0]]]

    assert added == ["x", "x-zed", "x-zed-2", "x-zed-3", "x"]
