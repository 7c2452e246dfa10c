"""Which names an error suggests for one that does not exist."""

from __future__ import annotations

import pytest

from goat_mcp.core.suggestions import did_you_mean, nearest, one_of


@pytest.mark.parametrize(
    ("given", "known", "near"),
    [
        ("Gerp", ["Glob", "Grep", "Read"], ["Grep"]),
        ("READ-ONLY", ["read_only", "core"], ["read_only"]),
        ("xyz", ["Glob", "Grep"], []),
        ("item0", [f"item{number}" for number in range(1, 9)], ["item8", "item7", "item6", "item5", "item4"]),
        ("permisions", ["permissions", "extensions"], ["permissions"]),
        ("a" * 1_000_000, ["a", "b"], []),
        ("", ["a"], []),
    ],
)
def test_the_nearest_names_come_first_and_at_most_five(given: str, known: list[str], near: list[str]) -> None:
    assert nearest(given, known) == near


def test_the_question_names_them_all() -> None:
    assert did_you_mean("Gerp", ["Grep"]) == "did you mean Grep?"
    assert did_you_mean("item0", ["item1", "item2"]) == "did you mean item2 or item1?"
    assert did_you_mean("item0", ["item1", "item2", "item3"]) == "did you mean item3, item2 or item1?"
    assert did_you_mean("xyz", ["Grep"]) == ""
    assert one_of("abcdefg") == "did you mean a, b, c, d or e?"
    assert one_of([]) == ""
