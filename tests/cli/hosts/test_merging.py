"""Servers put among those that our file has. CFG-2."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goat_mcp.cli.hosts.merging import ImportOutcome, MergedServer, Merging
from goat_mcp.cli.hosts.translate import Translated


def test_a_launch_that_is_disabled_in_our_file_stays_with_its_host() -> None:
    merging = Merging({"mine": {"command": "srv", "disabled": True}})

    assert merging.add(Translated("theirs", {"command": "srv"}), "cursor") == MergedServer(
        "theirs",
        ImportOutcome.KEPT,
        notes=("mine in your file is the same launch, with disabled: true; take that out there to use it",),
    )
    assert (
        merging.add(Translated("off", {"command": "srv", "disabled": True}), "cursor").outcome is ImportOutcome.PRESENT
    )
    assert merging.new == {}


@pytest.mark.parametrize("broken", [None, 3, [], {"command": "srv", "env": ["A"]}, {"command": "srv", "headers": 1}])
def test_a_broken_entry_of_ours_is_no_twin_and_keeps_its_name(broken: Any) -> None:
    merged = Merging({"x": broken}).add(Translated("x", {"command": "srv", "env": {"A": "1"}}), "zed")

    assert (merged.outcome, merged.to) == (ImportOutcome.IMPORTED, "x-zed")


def test_of_entries_with_one_name_each_gets_its_own() -> None:
    merging = Merging({})
    entries = [{"command": f"srv{number}"} for number in range(4)]

    added = [merging.add(Translated("x", entry), "zed").to for entry in [*entries, entries[0]]]

    assert added == ["x", "x-zed", "x-zed-2", "x-zed-3", "x"]


LIMITS = [
    {"disabled": True},
    {"disabled_tools": ["env", "big"]},
    {"enabled_tools": ["read"]},
    {"timeout_s": 5},
    {"disabled": True, "disabled_tools": ["env"], "timeout_s": 5},
]


@pytest.mark.parametrize("limits", LIMITS, ids=lambda limits: "+".join(limits))
def test_an_equal_launch_with_limits_of_its_own_stays_with_its_host_and_each_is_named(limits: dict[str, Any]) -> None:
    merging = Merging({"first": {"command": "srv"}})

    merged = merging.add(Translated("second", {"command": "srv", **limits}), "windsurf")

    assert (merged.outcome, merged.to, merging.new) == (ImportOutcome.KEPT, "", {})
    assert [told.partition(":")[0] for told in merged.notes[1:-1]] == [*limits]
    assert "the same launch as first" in merged.notes[0]
    assert all(json.dumps({key: value})[1:-1] in merged.notes[-1] for key, value in limits.items())


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"disabled_tools": ["a", "b"]}, {"disabled_tools": ["b"]}),
        ({"enabled_tools": ["a"]}, {"disabled_tools": ["b"]}),
        ({"enabled_tools": ["a", "b"], "disabled_tools": ["b"]}, {"enabled_tools": ["a", "c"]}),
        ({"enabled_tools": ["a"]}, {}),
    ],
)
def test_limits_that_hold_in_our_file_already_are_not_lost_and_stricter_ones_are_told(
    ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    merged = Merging({"x": {"command": "srv", **ours}}).add(Translated("x", {"command": "srv", **theirs}), "gemini")

    assert (merged.outcome, merged.to) == (ImportOutcome.PRESENT, "x")
    assert "which this one has not" in merged.notes[0]


def test_of_two_equal_launches_in_our_file_the_one_with_the_limits_counts() -> None:
    merging = Merging({"open": {"command": "srv"}, "closed": {"command": "srv", "disabled_tools": ["env"]}})

    merged = merging.add(Translated("x", {"command": "srv", "disabled_tools": ["env"]}), "gemini")

    assert merged == MergedServer("x", ImportOutcome.PRESENT, "closed", ("the same launch as closed",))


def test_of_two_equal_launches_in_our_file_the_one_that_is_switched_on_counts() -> None:
    merging = Merging({"off": {"command": "srv", "disabled": True}, "on": {"command": "srv"}})

    assert merging.add(Translated("on", {"command": "srv"}), "zed") == MergedServer("on", ImportOutcome.PRESENT, "on")


def test_what_our_file_says_besides_does_not_keep_an_entry_with_its_host() -> None:
    merging = Merging({"x": {"command": "srv", "timeout_s": 9, "prefix": "y"}})

    assert merging.add(Translated("x", {"command": "srv"}), "zed") == MergedServer("x", ImportOutcome.PRESENT, "x")
