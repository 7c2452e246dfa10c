"""Front matter as JSON: what YAML 1.2 says it is, and nothing that two readers could take for two things."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.files.documents.front_matter import BrokenFrontMatter
from goat_mcp.files.documents.front_matter_json import front_matter_json, is_same_json


def fields(yaml: str) -> dict[str, Any]:
    return front_matter_json(f"---\n{yaml}\n---\nbody".encode())


def test_plain_texts_are_what_the_core_schema_makes_of_them() -> None:
    yaml = "a: [true, True, yes, on, null, ~, 1, -1, +1, 017, 0o17, 0x1f, 1_000, 1.10, .5, 1e3, 12:30, 2026-01-01, '1']"

    assert fields(yaml) == {
        "a": [
            True,
            True,
            "yes",
            "on",
            None,
            None,
            1,
            -1,
            1,
            17,
            15,
            31,
            "1_000",
            1.1,
            0.5,
            1000.0,
            "12:30",
            "2026-01-01",
            "1",
        ]
    }


def test_blocks_keep_their_lines_and_merge_keys_are_keys() -> None:
    assert fields('a: |\n  one\n  two\nb: "x: y"\n<<: {c: 1}') == {"a": "one\ntwo\n", "b": "x: y", "<<": {"c": 1}}


@pytest.mark.parametrize(
    "yaml",
    [
        *("a: &x 1\nb: *x", "a: !!str 1", "a: !python/object:os.system x", "a: 1\na: 2", "1: a", "? [a]\n: b"),
        *("a: .inf", "a: -.INF", "a: .nan", "a: 1e999", "a: b: c", "- a", "a", "", "a: " + "[" * 40 + "]" * 40),
        *("a: 'x", "a:\n\t- b", "%YAML 9.9"),
    ],
)
def test_what_two_readers_could_take_for_two_things_is_refused(yaml: str) -> None:
    with pytest.raises(BrokenFrontMatter):
        fields(yaml)


def test_a_long_number_is_a_text_as_it_is_written() -> None:
    assert fields(f"a: {'9' * 5_000}") == {"a": "9" * 5_000}


def test_values_are_compared_as_json() -> None:
    assert is_same_json({"a": [1, {"b": None}]}, {"a": [1.0, {}]})
    assert not is_same_json({"a": 1}, {"a": True})
    assert not is_same_json({"a": [1]}, {"a": [1, 1]})
    assert not is_same_json({"a": "1"}, {"a": 1})
    assert not is_same_json({"a": {}}, {"a": []})
