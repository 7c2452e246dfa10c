"""What holds for every schema in every dialect (SCH-1, SCH-2, SCH-4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeGuard

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry

from goat_mcp.catalog.schemas.dialects import DIALECTS, Dialect
from goat_mcp.catalog.schemas.parameter_names import (
    accepted_name,
    declared_names,
    is_accepted,
    original_arguments,
    with_names,
)
from goat_mcp.catalog.schemas.portable import portable
from goat_mcp.catalog.schemas.root_schema import ROOT_RULES
from goat_mcp.catalog.schemas.subschemas import MAX_EXPANDED
from tests.catalog.schemas.foreign_schemas import arguments, json_values, roots
from tests.repetitions import examples

dialects = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
rewriting = pytest.mark.parametrize(
    "dialect", [each for each in DIALECTS.values() if not each.is_verbatim], ids=lambda dialect: dialect.name
)
often = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


def listed(schema: Any) -> dict[str, Any]:
    return {"name": "t", "description": "D", "inputSchema": schema, "outputSchema": schema}


@dialects
@often
@given(schema=roots)
def test_rewriting_twice_is_rewriting_once(dialect: Dialect, schema: dict[str, Any]) -> None:  # SCH-1
    before = json.dumps(schema)
    once = portable(listed(schema), dialect)

    twice = portable(once.entry, dialect)

    assert (twice.entry, twice.rewrites) == (once.entry, ())
    assert json.dumps(schema) == before, "the entry that came was changed"
    assert bool(once.rewrites) == (once.entry != listed(schema))


@rewriting
@often
@given(schema=roots)
def test_the_root_is_one_plain_object_and_arrays_have_items(dialect: Dialect, schema: dict[str, Any]) -> None:  # SCH-2
    new = portable(listed(schema), dialect).entry["inputSchema"]

    assert new["type"] == "object"
    assert not ROOT_RULES & new.keys()
    for node in subschemas(new):
        kind = node.get("type")
        if kind == "array" or (is_list(kind) and "array" in kind):
            assert "items" in node
    assert all(map(is_accepted, declared_names(new)))


@often
@given(schema=roots)
def test_gemini_sees_nothing_but_what_it_has_a_place_for(schema: dict[str, Any]) -> None:  # SCH-2
    dialect = DIALECTS["gemini"]

    new = portable(listed(schema), dialect).entry["inputSchema"]

    for node in subschemas(new):
        assert node.keys() <= (dialect.keywords or set())
        assert isinstance(node.get("type", "object"), str)
        assert all(isinstance(value, str) for value in node.get("enum", []))
        assert set(node.get("required", [])) <= node.get("properties", {}).keys()


@dialects
@often
@given(entry=st.dictionaries(st.sampled_from(["name", "inputSchema", "outputSchema", "description"]), json_values))
def test_any_json_is_taken(dialect: Dialect, entry: dict[str, Any]) -> None:  # SCH-2
    new = portable(entry, dialect).entry

    assert new["inputSchema"]["type"] == "object"
    assert portable(new, dialect).entry == new


@rewriting
@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(schema=roots, given_arguments=st.lists(arguments, min_size=1, max_size=8))
def test_what_fitted_still_fits_and_comes_back_under_the_names_it_had(  # SCH-2
    dialect: Dialect, schema: dict[str, Any], given_arguments: list[dict[str, Any]]
) -> None:
    new = portable(listed(schema), dialect).entry["inputSchema"]
    declared = declared_names(new)
    new_names = {name: accepted_name(name) for name in declared_names(schema) if not is_accepted(name)}
    shown = {old: name for old, name in new_names.items() if name in declared}

    for each in given_arguments:
        sent = with_names(each, shown)
        assert original_arguments(sent, new_names) == each
        if fits(each, schema) and fits(each, closed(schema, schema)):
            assert fits(sent, new), (each, new)


@often
@given(schema=roots)
def test_nothing_expands_without_end(schema: dict[str, Any]) -> None:  # SCH-4
    for dialect in DIALECTS.values():
        new = portable(listed(schema), dialect).entry["inputSchema"]

        assert sum(1 for _ in subschemas(new)) <= MAX_EXPANDED + len(json.dumps(schema))


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def subschemas(schema: Any, *, is_named: bool = False) -> Iterator[dict[str, Any]]:
    """Every schema in a schema, itself first."""
    if is_list(schema):
        for child in schema:
            yield from subschemas(child)
    elif is_object(schema):
        if not is_named:
            yield schema
        for key, child in schema.items():
            if is_named or key not in ("const", "enum", "default", "examples", "required", "dependentRequired"):
                named = not is_named and key in ("properties", "patternProperties", "$defs", "dependentSchemas")
                yield from subschemas(child, is_named=named)


def fits(value: Any, schema: Any) -> bool:
    """A schema nobody can follow (a reference in a circle, or to nowhere) fits nothing."""
    try:
        validator: Any = Draft202012Validator(schema, registry=Registry())
        return bool(validator.is_valid(value))
    except SchemaError:
        raise
    except Exception:
        return False


def closed(node: Any, document: Any, level: int = 0) -> Any:
    """The root as we read it: a branch has no property that only its siblings name."""
    if not is_object(node) or level > 4:
        return node
    new = {key: value for key, value in node.items() if key not in ("$ref", "unevaluatedProperties")}
    conjuncts: list[Any] = []
    if "$ref" in node:
        conjuncts.append(closed(resolved(node["$ref"], document), document, level + 1))
    conjuncts += [closed(each, document, level + 1) for each in new.pop("allOf", [])]
    for keyword in ("oneOf", "anyOf"):
        if keyword in new:
            branches = new.pop(keyword)
            names = set[str]().union(*(named(branch, document) for branch in branches))
            conjuncts.append({"anyOf": [without(branch, names, document, level) for branch in branches]})
    if "if" in new and ("then" in new or "else" in new):
        branches = [new.pop("then", True), new.pop("else", True)]
        names = named(branches[0], document) | named(branches[1], document)
        for key, branch in zip(("then", "else"), branches, strict=True):
            new[key] = without(branch, names, document, level)
    return {**new, "allOf": conjuncts} if conjuncts else new


def without(branch: Any, names: set[str], document: Any, level: int) -> Any:
    foreign = names - named(branch, document)
    return {"allOf": [closed(branch, document, level + 1), {"properties": dict.fromkeys(foreign, False)}]}


def named(node: Any, document: Any, level: int = 0) -> set[str]:
    """The properties a branch speaks of."""
    if not is_object(node) or level > 6:
        return set()
    below: list[Any] = [*node.get("allOf", []), *node.get("oneOf", []), *node.get("anyOf", [])]
    below += [node[key] for key in ("then", "else") if key in node and "if" in node]
    below += [resolved(node["$ref"], document)] if "$ref" in node else []
    return set(node.get("properties", {})).union(*(named(each, document, level + 1) for each in below))


def resolved(reference: str, document: Any) -> Any:
    node: Any = document
    for key in reference.split("/")[1:]:
        node = node[int(key)] if is_list(node) else node.get(key) if is_object(node) else None
    return node
