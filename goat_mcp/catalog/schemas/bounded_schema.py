"""A JSON Schema from others, compiled so that a check ends soon, whatever schema and data say (SCH-4, R-SCHEMA-3).

Nothing is fetched, patterns run in linear time, and work is counted. It is imported with the first value to check: the
validation library costs more than the rest of a call.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, cast

from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]  # typed in part only
from pydantic_core import SchemaError as BrokenPattern
from pydantic_core import SchemaValidator
from pydantic_core.core_schema import str_schema
from referencing import Registry

from goat_mcp.files.documents.visible_text import make_visible

MAX_SCHEMA_BYTES = 256 * 1024
MAX_DEPTH = 64
MAX_NODES = 10_000
MAX_STEPS = 50_000
_DIALECTS: Mapping[str, Any] = {
    "https://json-schema.org/draft/2020-12/schema": Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": Draft201909Validator,
    "http://json-schema.org/draft-07/schema": Draft7Validator,
}
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_IDENTITY = ("$schema", "$id")
_SHOWN_CHARS = 200


class Uncheckable(Exception):
    """The schema, or this data against it, is beyond what we check. The text says why."""


class UnresolvableReference(Uncheckable):
    """A schema whose references lead to nothing, in circles, or to something that is none."""


@dataclass(frozen=True)
class Mismatch:
    """`path` is where in the data, `demand` what the schema wants there, `keyword` which of its keywords does."""

    path: str
    keyword: str
    demand: str


class BoundedSchema:
    """One compiled schema. `name` is what errors call it. Raises `Uncheckable` for one that is broken or too large."""

    def __init__(self, schema: Any, name: str = "outputSchema") -> None:
        self._name = name
        try:
            if len(json.dumps(schema)) > MAX_SCHEMA_BYTES:
                raise Uncheckable(f"its {name} is larger than {MAX_SCHEMA_BYTES} bytes")
        except RecursionError:
            raise Uncheckable(f"its {name} is nested deeper than {MAX_DEPTH} levels") from None
        dialect = _DIALECTS.get(_dialect_of(schema))
        if dialect is None:
            raise Uncheckable(f"its {name} is of a dialect other than 2020-12, 2019-09 and draft-07")
        survey = _Survey(name)
        own = survey.copied(schema, 0)
        try:
            dialect.check_schema(own)
        except SchemaError as broken:
            raise Uncheckable(f"its {name} is broken at {broken.json_path}"[:_SHOWN_CHARS]) from None
        self._steps = _Steps()
        bounded = cast("Any", extend)(dialect, _bounded_keywords(dialect, survey.patterns, self._steps))
        # An empty registry knows no way to fetch: a remote reference is unresolvable, never a request.
        self._validator: Any = bounded(own, registry=cast("Any", Registry)())

    def mismatch(self, data: Any, max_steps: int = MAX_STEPS) -> Mismatch | None:
        """The first mismatch, None if there is none. Raises `Uncheckable`."""
        error = next(self.errors(data, max_steps), None)
        if error is None:
            return None
        keyword = str(error.validator)
        return Mismatch(make_visible(error.json_path[:_SHOWN_CHARS]), keyword, _shown(keyword, error.validator_value))

    def errors(self, data: Any, max_steps: int = MAX_STEPS) -> Iterator[ValidationError]:
        """Every mismatch, as the library has it. Raises `Uncheckable`."""
        self._steps.left = max_steps
        try:
            yield from self._validator.iter_errors(data)
        except Uncheckable:
            raise
        except Exception as failure:
            # A schema from others can break the library in ways of its own (references that lead nowhere or in
            # circles among them). That is no fault of the data.
            raise UnresolvableReference(f"its {self._name} cannot be followed: {type(failure).__name__}") from None


def _dialect_of(schema: Any) -> str:
    stated: Any = cast("dict[str, Any]", schema).get("$schema") if isinstance(schema, dict) else None
    return stated.rstrip("#") if isinstance(stated, str) else "https://json-schema.org/draft/2020-12/schema"


def _shown(keyword: str, wanted: Any) -> str:
    text = f"{keyword}: {json.dumps(wanted, ensure_ascii=True)}" if keyword != "None" else "false: nothing fits"
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."


class _Steps(threading.local):
    """What one check may still cost; checks of the same schema may run in several threads."""

    left = 0

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Uncheckable("checking its value takes too many steps")


class _Pattern:
    """A pattern in an engine that cannot backtrack; the usual one can be made to run for years."""

    def __init__(self, pattern: str, name: str) -> None:
        try:
            self._matches = SchemaValidator(str_schema(pattern=pattern), {"regex_engine": "rust-regex"})
        except BrokenPattern:
            raise Uncheckable(f"its {name} has a pattern we do not run: {pattern[:80]!r}") from None

    def found_in(self, text: str) -> bool:
        return self._matches.isinstance_python(text)


class _Survey:
    """Copies a schema, and learns on the way whether it is one to compile."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.patterns: dict[str, _Pattern] = {}
        self._nodes = 0

    def copied(self, node: Any, depth: int) -> Any:
        """`node` without `$schema`, which would switch a part of it to keywords not bounded, and without its `$id`."""
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise Uncheckable(f"its {self._name} is nested deeper than {MAX_DEPTH} levels")
        if self._nodes > MAX_NODES:
            raise Uncheckable(f"its {self._name} has more than {MAX_NODES} parts")
        if isinstance(node, list):
            return [self.copied(child, depth + 1) for child in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        schema = cast("dict[str, Any]", node)
        self._check(schema, depth)
        return {
            key: self.copied(child, depth + 1)
            for key, child in schema.items()
            if not (key in _IDENTITY and isinstance(child, str))
        }

    def _check(self, schema: dict[str, Any], depth: int) -> None:
        refers = [schema[key] for key in _REFERENCES if isinstance(schema.get(key), str)]
        # By way of a metaschema, a schema could come back to itself past our bounds.
        if not all(target.startswith("#") for target in refers) or (depth and isinstance(schema.get("$id"), str)):
            raise Uncheckable(f"its {self._name} refers to something beside itself")
        pattern, by_pattern, kinds = schema.get("pattern"), schema.get("patternProperties"), schema.get("type")
        if isinstance(pattern, str):
            self._learn(pattern)
        if isinstance(by_pattern, dict):
            for each in cast("dict[str, Any]", by_pattern):
                self._learn(each)
            if "unevaluatedProperties" in schema:
                raise Uncheckable(f"its {self._name} joins patternProperties and unevaluatedProperties")
        if isinstance(kinds, list) and len(cast("list[Any]", kinds)) > 7:
            raise Uncheckable(f"its {self._name} names more types than there are")

    def _learn(self, pattern: str) -> None:
        if pattern not in self.patterns:
            self.patterns[pattern] = _Pattern(pattern, self._name)


Errors = Iterator[ValidationError] | None


def _bounded_keywords(dialect: Any, patterns: Mapping[str, _Pattern], steps: _Steps) -> dict[str, Any]:
    """Each keyword of the dialect, counted; those whose cost the library does not bound, in our own words."""

    def pattern(validator: Any, wanted: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not patterns[wanted].found_in(instance):
            yield ValidationError("does not match")

    def pattern_properties(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not isinstance(instance, dict):
            return
        for each, subschema in wanted.items():
            for key, value in cast("dict[str, Any]", instance).items():
                steps.take()
                if patterns[each].found_in(key):
                    yield from validator.descend(value, subschema, path=key, schema_path=each)

    def additional_properties(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not isinstance(instance, dict):
            return
        named, matched = schema.get("properties", {}), [patterns[each] for each in schema.get("patternProperties", {})]
        for key, value in cast("dict[str, Any]", instance).items():
            if key in named or any(each.found_in(key) for each in matched):
                continue
            steps.take()
            if wanted is False:
                yield ValidationError("has a member too many", path=(key,))
            else:
                yield from validator.descend(value, wanted, path=key)

    def unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        seen: set[Any] = set()
        for item in cast("list[Any]", instance) if wanted and isinstance(instance, list) else ():
            steps.take()
            key = _comparable(item)
            if key in seen:
                yield ValidationError("has an item twice")
                return
            seen.add(key)

    def multiple_of(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        # In decimal, as people write prices: in binary 19.99 is no multiple of 0.01.
        is_number = isinstance(instance, int | float) and not isinstance(instance, bool)
        if is_number and (abs(instance) == math.inf or Fraction(str(instance)) % Fraction(str(wanted))):
            yield ValidationError("is no multiple")

    def counted(keyword: Any, validator: Any, wanted: Any, instance: Any, schema: Any) -> Errors:
        steps.take()
        return keyword(validator, wanted, instance, schema)

    keywords = dict(dialect.VALIDATORS) | {
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
        "uniqueItems": unique_items,
        "multipleOf": multiple_of,
    }
    return {name: partial(counted, keyword) for name, keyword in keywords.items()}


def _comparable(value: Any) -> Any:
    """Equal for equal JSON, hashable, and telling `true` from `1`."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, dict):
        return frozenset((key, _comparable(child)) for key, child in cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return tuple(_comparable(item) for item in cast("list[Any]", value))
    return value
