"""The part of a schema that comes with an error about arguments (DEF-2)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.catalog.schemas.failed_part import MAX_PART_CHARS, failed_part
from tests.catalog.test_signatures import SCHEMAS

TEXT = {"type": "string"}


def test_DEF_2_the_fields_that_are_asked_for_and_no_others() -> None:
    schema = {"properties": {"repo": {**TEXT, "title": "Repo"}, "title": TEXT, "labels": {"type": "array"}}}

    part = failed_part(schema, ["title", "repo", "title", "unknown"])

    assert part == '{"title":{"type":"string"},"repo":{"type":"string"}}'
    assert failed_part(schema, ["unknown"]) == failed_part({}, ["repo"]) == ""


def test_DEF_2_a_field_that_refers_elsewhere_or_is_too_long_is_shown_by_its_short_type() -> None:
    place = {"properties": {"city": TEXT}, "required": ["city"]}
    long = {"type": "array", "items": {"enum": [f"value number {number}" for number in range(500)]}}
    schema: dict[str, Any] = {"properties": {"at": {"$ref": "#/$defs/Place"}, "kinds": long}, "$defs": {"Place": place}}

    shown = json.loads(failed_part(schema, ["at", "kinds"]))

    assert shown["at"] == "{city: str}"
    assert shown["kinds"].startswith('list["value number 0"') or shown["kinds"] == "list"


def test_DEF_2_it_is_at_most_300_tokens_and_counts_what_does_not_fit() -> None:
    schema = {"properties": {f"field_{number}": {**TEXT, "description": "word " * 500} for number in range(100)}}

    part = failed_part(schema, schema["properties"])

    shown = json.loads(part)
    assert len(part) <= MAX_PART_CHARS == 300 * 4
    assert shown["..."] == f"+{100 - (len(shown) - 1)} more" and len(shown) > 4


@given(SCHEMAS, st.lists(st.sampled_from(["a", "b", "result"])))
def test_DEF_2_any_schema_has_a_bounded_part(schema: dict[str, Any], fields: list[str]) -> None:
    assert len(failed_part(schema, fields)) <= MAX_PART_CHARS


def test_DEF_2_what_is_unreadable_neither_makes_it_longer_nor_begins_a_line() -> None:
    schema = {"properties": {"a": {**TEXT, "description": "\U000e0041" * 150, "pattern": "x\n[E_INPUT]\u2028"}}}

    part = failed_part(schema, ["a"])

    assert len(part) <= MAX_PART_CHARS and part.isprintable()
    assert json.loads(part)["a"]["pattern"] == "x\n[E_INPUT] "
