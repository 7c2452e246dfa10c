"""The root of an input schema as one plain object: what its combinators said is united, the rest told in words (SCH-2).

Whatever fits the old root fits the new one, with one reading that is ours: a branch that does not name a property says
nothing of it, so the property keeps what the branches that do name it say. What is below the root is `subschemas`'.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from goat_mcp.catalog.schemas.parameter_names import accepted_name
from goat_mcp.catalog.schemas.references import Local
from goat_mcp.core.errors import cut_middle

ROOT_RULES = frozenset({"oneOf", "anyOf", "allOf", "if", "then", "else", "not", "enum", "const", "$ref", "$dynamicRef"})
_DROPPED_WITH_RULES = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_OF_OBJECTS = ("minProperties", "maxProperties", "propertyNames", "dependentRequired", "dependentSchemas")
MAX_RULES_CHARS = 800
_MAX_SHOWN_CHARS = 200
_MAX_PARTS = 1_000
_MAX_LEVELS = 32
_MISSING: Any = object()

Object = dict[str, Any]


def is_plain(schema: Mapping[str, Any]) -> bool:
    """Whether the root needs nothing."""
    return schema.get("type") == "object" and ROOT_RULES.isdisjoint(schema)


def plain_root(schema: Mapping[str, Any], local: Local) -> tuple[Object, tuple[str, ...]]:
    """The folded root, and each rule it no longer states, in words."""
    if ROOT_RULES.isdisjoint(schema):
        return {**schema, "type": "object"}, ()
    fold = _Fold(local)
    part = fold.part(schema, 0, ())
    kept = {key: value for key, value in schema.items() if key not in ROOT_RULES and key not in _DROPPED_WITH_RULES}
    folded: Object = {**kept, "type": "object"}
    for key, value in part.others.items():
        folded.setdefault(key, value)
    for key, value in (("properties", part.properties), ("patternProperties", part.patterns)):
        if value or key in folded:
            folded[key] = value
    if part.required or "required" in folded:
        folded["required"] = part.required
    if part.additional is not _MISSING:
        folded["additionalProperties"] = part.additional
    return folded, tuple(part.rules)


@dataclass
class _Part:
    """What one schema says of an object, without its combinators."""

    properties: Object = field(default_factory=dict[str, Any])
    patterns: Object = field(default_factory=dict[str, Any])
    required: list[str] = field(default_factory=list[str])
    additional: Any = _MISSING
    others: Object = field(default_factory=dict[str, Any])
    rules: list[str] = field(default_factory=list[str])
    title: str = ""

    def also(self, other: _Part) -> None:
        """Both hold."""
        for name, schema in other.properties.items():
            mine = self.properties.setdefault(name, schema)
            if mine != schema:
                self.properties[name] = {"allOf": [*_all_of(mine), *_all_of(schema)]}
        for pattern, schema in other.patterns.items():
            mine = self.patterns.setdefault(pattern, schema)
            if mine != schema:
                self.patterns[pattern] = {"allOf": [*_all_of(mine), *_all_of(schema)]}
        self.required += [name for name in other.required if name not in self.required]
        if self.additional is _MISSING:
            self.additional = other.additional
        for key, value in other.others.items():
            self.others.setdefault(key, value)
        self.rules += [rule for rule in other.rules if rule not in self.rules]

    def one_of(self, branches: Sequence[_Part]) -> None:
        """One of them holds too, or several."""
        required = [name for name in branches[0].required if all(name in branch.required for branch in branches)]
        self.required += [name for name in required if name not in self.required]
        names = dict.fromkeys(name for branch in branches for name in branch.properties)
        for name in names:
            said = [branch.properties[name] for branch in branches if name in branch.properties]
            united = _united(said)
            mine = self.properties.get(name, _MISSING)
            if mine is _MISSING:
                if united is not False:
                    self.properties[name] = united
            elif len(said) == len(branches) and isinstance(mine, dict) and not mine.keys() & {"enum", "const"}:
                values = _values(united)
                if values is not None:
                    self.properties[name] = {**cast("Object", mine), "enum": values}
        is_closed = all(branch.additional is False and not branch.patterns for branch in branches)
        if self.additional is _MISSING and is_closed:
            self.additional = False


class _Fold:
    def __init__(self, local: Local) -> None:
        self._local = local
        self._parts = 0

    def part(self, schema: object, level: int, trail: tuple[int, ...]) -> _Part:
        self._parts += 1
        identity = id(schema)
        if identity in trail or level > _MAX_LEVELS or self._parts > _MAX_PARTS or not isinstance(schema, Mapping):
            return _Part()
        given = cast("Mapping[str, Any]", schema)
        inner = (*trail, identity)
        part = _own(given)
        if isinstance(reference := given.get("$ref"), str):
            part.also(self.part(self._local.target(reference), level + 1, inner))
        for each in _list(given.get("allOf")):
            part.also(self.part(each, level + 1, inner))
        for keyword, demand in (("oneOf", "exactly one"), ("anyOf", "at least one")):
            branches = [
                self.part(branch, level + 1, inner)
                for branch in _list(given.get(keyword))
                if self._may_be_object(branch)
            ]
            if branches:
                before = list(part.required)
                part.one_of(branches)
                told = [_in_words(branch, before, part.properties) for branch in branches]
                if len(branches) > 1:
                    part.rules.append(f"Arguments must fit {demand} of: {_joined(told)}.")
        if "if" in given:
            self._conditional(part, given, level, inner)
        if "not" in given:
            part.rules.append(f"Arguments must not fit {_shown(given['not'])}.")
        for keyword in ("enum", "const"):
            if keyword in given:
                part.rules.append(f"Arguments are limited by {keyword}: {_shown(given[keyword])}.")
        return part

    def _conditional(self, part: _Part, given: Mapping[str, Any], level: int, trail: tuple[int, ...]) -> None:
        if "then" not in given and "else" not in given:
            return
        before = list(part.required)
        branches = [self.part(given.get(key), level + 1, trail) for key in ("then", "else")]
        part.one_of(branches)
        condition = self.part(given["if"], level + 1, trail)
        outcomes = [
            f"{word} {_in_words(branch, before, {})}"
            for word, key, branch in (("then", "then", branches[0]), ("otherwise", "else", branches[1]))
            if key in given
        ]
        is_simple = (condition.properties or condition.required) and all(
            schema is False or _values(schema) is not None for schema in condition.properties.values()
        )
        when = _in_words(condition, [], {}, is_condition=True) if is_simple else _shown(given["if"])
        part.rules.append(f"If {when}: {', '.join(outcomes)}.")

    def _may_be_object(self, schema: Any) -> bool:
        """Arguments always are one, so that a branch for anything else is no choice."""
        for _ in range(_MAX_LEVELS):
            if schema is False:
                return False
            if not isinstance(schema, dict):
                return True
            given = cast("Object", schema)
            kind = given.get("type", "object")
            if kind != "object" and not (isinstance(kind, list) and "object" in kind):
                return False
            if not isinstance(reference := given.get("$ref"), str):
                return True
            schema = self._local.target(reference)
        return True


def _own(given: Mapping[str, Any]) -> _Part:
    properties, patterns, required = given.get("properties"), given.get("patternProperties"), given.get("required")
    return _Part(
        dict(cast("Object", properties)) if isinstance(properties, dict) else {},
        dict(cast("Object", patterns)) if isinstance(patterns, dict) else {},
        [name for name in _list(required) if isinstance(name, str)],
        given.get("additionalProperties", _MISSING),
        {key: given[key] for key in _OF_OBJECTS if key in given},
        title=title if isinstance(title := given.get("title"), str) else "",
    )


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _all_of(schema: Any) -> list[Any]:
    """What has to hold, flat if the schema is nothing but a list of such."""
    if isinstance(schema, dict) and list(cast("Object", schema)) == ["allOf"] and isinstance(schema["allOf"], list):
        return cast("list[Any]", schema["allOf"])
    return [schema]


def _united(said: Sequence[Any]) -> Any:
    """One schema for what fits any of them. A branch that forbids the property adds nothing."""
    allowed: list[Any] = []
    for schema in said:
        if schema is not False and schema not in allowed:
            allowed.append(schema)
    if not allowed:
        return False
    if len(allowed) == 1:
        return allowed[0]
    values = [_values(schema) for schema in allowed]
    if all(found is not None for found in values):
        united: list[Any] = []
        for value in (value for found in values for value in found or []):
            if not _is_among(value, united):
                united.append(value)
        kinds = {json.dumps(schema.get("type")) for schema in allowed}
        kept = {key: allowed[0][key] for key in ("type", "title", "description") if key in allowed[0]}
        if len(kinds) > 1:
            kept.pop("type", None)
        if "type" not in kept and all(isinstance(value, str) for value in united):
            kept["type"] = "string"
        return {**kept, "enum": united}
    return {"anyOf": [inner for schema in allowed for inner in _any_of(schema)]}


def _any_of(schema: Any) -> list[Any]:
    if isinstance(schema, dict) and list(cast("Object", schema)) == ["anyOf"] and isinstance(schema["anyOf"], list):
        return cast("list[Any]", schema["anyOf"])
    return [schema]


def _values(schema: Any) -> list[Any] | None:
    """The values a schema allows, where it says nothing else."""
    if not isinstance(schema, dict):
        return None
    given = cast("Object", schema)
    if not given.keys() <= {"type", "title", "description", "const", "enum", "default"}:
        return None
    if "const" in given and "enum" not in given:
        return [given["const"]]
    listed = given.get("enum")
    return cast("list[Any]", listed) if isinstance(listed, list) and "const" not in given else None


def _is_among(value: Any, values: Iterable[Any]) -> bool:
    """JSON tells `true` from 1."""
    return any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in values)


def _in_words(part: _Part, required: Sequence[str], known: Mapping[str, Any], *, is_condition: bool = False) -> str:
    """What a branch asks for, in words."""
    facts: list[str] = []
    for name, schema in part.properties.items():
        values = _values(schema)
        if values is not None and len(values) <= 5:
            facts.append(f"{_name(name)} is {' or '.join(_shown(value) for value in values)}")
        elif schema is False:
            facts.append(f"no {_name(name)}")
    stated = {name for name, schema in part.properties.items() if _values(schema) is not None}
    needed = [name for name in part.required if name not in required and name not in stated]
    if needed:
        names = ", ".join(map(_name, needed))
        facts.append(f"{names} {'is' if len(needed) == 1 else 'are'} given" if is_condition else f"{names} required")
    if facts:
        return " and ".join(facts)
    if part.properties:
        return f"uses {', '.join(map(_name, part.properties))}"
    return part.title or "nothing more"


def _joined(told: Sequence[str]) -> str:
    return "; ".join(f"({number}) {text}" for number, text in enumerate(told, 1))


def _name(name: str) -> str:
    return accepted_name(name)


def _shown(value: Any) -> str:
    try:
        return cut_middle(json.dumps(value), _MAX_SHOWN_CHARS)
    except (RecursionError, TypeError, ValueError):
        return "a rule that is too long to show"
