"""Checks values of a declared tool against its schemas: a call's arguments, and what a user set under `tools.RESOURCE`.

The library that checks values is loaded, and a schema compiled, by the first call that needs it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from goat_mcp.core.coercion import Kind, Problem, coerced, has_lone_surrogate, input_error, shown_value
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import has_infinity
from goat_mcp.core.yaml_words import meant_word

if TYPE_CHECKING:
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

_KIND_OF: Mapping[str, Kind] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "array": "list",
    "object": "object",
}
_ABSENT = ("null", "undefined")

_NAMES_KEYS_ONLY = ("additionalProperties", "required")
"""Keywords whose messages quote no value, which may be a secret."""


class Parameters:
    """One export's parameters."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._properties: Mapping[str, Any] = schema.get("properties", {})
        self._required: list[str] = schema.get("required", [])
        self._kinds: Mapping[str, Kind] = {name: _kind(child) for name, child in self._properties.items()}
        self._nullable = {name for name, child in self._properties.items() if _takes_null(child)}
        self._aliases = {_camel_case(name): name for name in self._properties if _camel_case(name) != name}

    @cached_property
    def _compiled(self) -> BoundedSchema:
        from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema, Uncheckable

        try:
            return BoundedSchema(self._schema, "parameters")
        except Uncheckable as why:
            raise _broken(why) from None

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the handler gets them. Raises `ToolError(INPUT)` with a line for each problem."""
        problems: list[Problem] = []
        ready = self._ready(arguments, problems)
        problems += self._mismatches(ready, known=problems)
        if problems:
            raise input_error(problems)
        return ready

    def _mismatches(self, ready: Mapping[str, Any], known: Sequence[Problem]) -> list[Problem]:
        from goat_mcp.catalog.schemas.bounded_schema import Uncheckable, UnresolvableReference

        found: dict[Problem, None] = {}
        try:
            for error in self._compiled.errors(ready):
                found[self._described(error)] = None
        except UnresolvableReference as why:
            raise _broken(why) from None
        except Uncheckable as why:
            raise ToolError(ErrorCode.INPUT, f"these arguments cannot be checked: {why}", "Send less.") from None
        return [problem for problem in found if problem not in known]

    def _ready(self, arguments: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
        is_closed = self._schema.get("additionalProperties", False) is False
        ready: dict[str, Any] = {}
        for given, value in arguments.items():
            name = given if given in self._properties else self._aliases.get(given, given)
            if has_lone_surrogate(value):
                problems.append((given, "holds half a surrogate pair, which is no text"))
            elif name in ready and ready[name] != value:
                problems.append((given, f"is another name of {name}, which came with a different value; send one"))
            elif name not in self._properties and is_closed:
                problems.append((given, self._unknown(given)))
            elif name in self._nullable and _is_null(self._kinds[name], value):
                ready[name] = None
            elif not self._is_absent(name, value):
                ready[name] = coerced(self._kinds.get(name, "any"), value)
                if has_infinity(ready[name]):
                    problems.append((given, "holds a number that is too large, or none"))
        return ready

    def _is_absent(self, name: str, value: Any) -> bool:
        if name in self._required or name not in self._properties:
            return False
        kind = self._kinds[name]
        if value is None:
            return kind != "any"
        return kind not in ("text", "any") and isinstance(value, str) and value.strip() in _ABSENT

    def _unknown(self, given: str) -> str:
        near = difflib.get_close_matches(given[:100], self._properties, n=1)
        if near:
            return f"unknown field; did you mean {near[0]}?"
        return f"unknown field; known are {', '.join(self._properties) or 'none'}"

    def _described(self, error: Any) -> Problem:
        path: list[str | int] = list(error.absolute_path)
        where = ".".join(map(str, path))
        keyword: str = error.validator
        demand: Any = error.validator_value
        if keyword == "required":
            (missing,) = [name for name in demand if name not in error.instance and repr(name) in error.message][:1]
            return ".".join(map(str, [*path, missing])), "is required"
        if keyword == "additionalProperties":
            return where, str(error.message)
        if keyword == "type":
            kinds = cast("list[str]", demand) if isinstance(demand, list) else [cast("str", demand)]
            wanted = " or ".join(kinds)
        elif keyword == "enum":
            wanted = f"one of {', '.join(map(str, demand))}"
        else:
            wanted = f"{keyword} {demand}" if isinstance(demand, str | int | float) else f"what its {keyword} says"
        return where, f"wants {wanted}; got {shown_value(error.instance)}"


def _broken(why: Exception) -> ToolError:
    return ToolError(ErrorCode.CONFIG, f"the manifest of this tool: {why}", "Tell the user.")


def _kind(schema: Any) -> Kind:
    kind: Any = cast("Mapping[str, Any]", schema).get("type") if isinstance(schema, Mapping) else None
    if isinstance(kind, list):
        real = [one for one in cast("list[str]", kind) if one != "null"]
        kind = real[0] if len(real) == 1 else None
    return _KIND_OF.get(str(kind), "any")


def _takes_null(schema: Any) -> bool:
    """Whether it says so itself; one that says so through others is of kind "any", whose values are not touched."""
    if not isinstance(schema, Mapping):
        return False
    kind: Any = cast("Mapping[str, Any]", schema).get("type")
    return kind == "null" or (isinstance(kind, list) and "null" in kind)


def _is_null(kind: Kind, value: Any) -> bool:
    """`"null"` too, where a text is not meant by it."""
    return value is None or (kind not in ("text", "any") and isinstance(value, str) and value.strip() == "null")


def _camel_case(name: str) -> str:
    """`max_bytes` for `maxBytes` and the other way round: what models make of each other's habits."""
    if "_" in name:
        head, *rest = name.split("_")
        return head + "".join(part.capitalize() for part in rest) if head else name
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def with_meant_words(values: Any, schema: Any) -> Any:
    """What a user has set; a word that YAML has read as a truth value is that word again where its `enum` has it."""
    if not isinstance(schema, Mapping):
        return values
    keywords = cast("Mapping[str, Any]", schema)
    if not isinstance(values, Mapping):
        return meant_word(values, keywords.get("enum", ()))
    properties: Any = keywords.get("properties") or {}
    given = cast("Mapping[str, Any]", values)
    return {name: with_meant_words(value, properties.get(name)) for name, value in given.items()}


class ConfigCheck:
    """One resource's. The schema is compiled for the first call of a user who has set something."""

    def __init__(self, resource: str, schema: Mapping[str, Any] | None) -> None:
        self._resource = resource
        self._schema = schema

    @cached_property
    def _compiled(self) -> BoundedSchema:
        from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

        return BoundedSchema(self._schema, "config")

    def check(self, values: Mapping[str, Any]) -> None:
        """Raises `ToolError(CONFIG)` with the first thing that is wrong."""
        if not values or self._schema is None:
            return
        from goat_mcp.catalog.schemas.bounded_schema import Uncheckable

        try:
            error: Any = next(self._compiled.errors(values), None)
        except Uncheckable as why:
            raise self._wrong("", str(why)) from None
        if error is not None:
            keyword = str(error.validator)
            told = str(error.message) if keyword in _NAMES_KEYS_ONLY else f"wants {keyword} {error.validator_value}"
            raise self._wrong("".join(f".{part}" for part in error.absolute_path), told)

    def _wrong(self, where: str, what: str) -> ToolError:
        return ToolError(
            ErrorCode.CONFIG,
            f"tools.{self._resource}{where}: {what}",
            "Tell the user: the settings are to be repaired.",
        )
