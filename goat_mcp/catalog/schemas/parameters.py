"""A call's arguments against the JSON Schema that its tool declares: what a caller meant, and every problem in one
message, in our words. Contract: tools.md, "Arguments".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from goat_mcp.core.coercion import Kind, Problem, coerced, has_lone_surrogate, input_error, shown_value
from goat_mcp.core.errors import cut_middle
from goat_mcp.core.json_values import has_infinity
from goat_mcp.core.suggestions import did_you_mean

if TYPE_CHECKING:  # loads the validation library
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
_MAX_DEMAND_CHARS = 200
_MAX_ERRORS = 100
_BOUNDS: Mapping[str, str] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} fields",
    "maxProperties": "at most {} fields",
    "pattern": "a text that matches {}",
}


class Parameters:
    """One tool's. `is_open`: fields that the schema does not name are accepted unless it forbids them."""

    def __init__(self, schema: Mapping[str, Any], *, is_open: bool = False) -> None:
        properties: Any = schema.get("properties")
        required: Any = schema.get("required")
        self._schema = schema
        self._properties: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        self._required: Sequence[Any] = required if isinstance(required, list) else ()
        self._is_closed = schema.get("additionalProperties", is_open) is False and "patternProperties" not in schema
        self._kinds: Mapping[str, Kind] = {name: _kind(child) for name, child in self._properties.items()}
        self._nullable = {name for name, child in self._properties.items() if _takes_null(child)}
        self._aliases = {_camel_case(name): name for name in self._properties if _camel_case(name) != name}

    def read(
        self, arguments: Mapping[str, Any], compiled: BoundedSchema, max_steps: int | None = None
    ) -> dict[str, Any]:
        """The arguments as the schema has them. Raises `ToolError(INPUT)` with a line for each problem, and
        `Uncheckable`."""
        problems: list[Problem] = []
        ready = self._ready(arguments, problems)
        problems += [problem for problem in _mismatches(ready, compiled, max_steps) if problem not in problems]
        if problems:
            from goat_mcp.catalog.schemas.failed_part import failed_part  # only an error needs it

            # One that is not known is probably how the caller wrote the one that is missing.
            new = [(name, _unknown(name, self._properties)) for name in ready if self._is_misspelled(name)]
            problems += [problem for problem in new if problem not in problems]
            shown = [(_on_one_line(where), _on_one_line(what)) for where, what in problems]
            raise input_error(shown, failed_part(self._schema, self._concerned(problems, ready)))
        return ready

    def _ready(self, arguments: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
        ready: dict[str, Any] = {}
        for given, value in arguments.items():
            name = given if given in self._properties else self._aliases.get(given, given)
            if has_lone_surrogate(value):
                problems.append((given, "holds half a surrogate pair, which is no text"))
            elif name in ready and ready[name] != value:
                problems.append((given, f"is another name of {name}, which came with a different value; send one"))
            elif name not in self._properties and self._is_closed:
                problems.append((given, _unknown(given, self._properties)))
            elif name in self._nullable and _is_null(self._kinds[name], value):
                ready[name] = None
            elif not self._is_absent(name, value):
                ready[name] = coerced(self._kinds.get(name, "any"), value)
                if has_infinity(ready[name]):
                    problems.append((given, "holds a number that is too large, or none"))
        return ready

    def _concerned(self, problems: Sequence[Problem], ready: Mapping[str, Any]) -> Sequence[str]:
        """The fields that are missing, then those in which something is wrong."""
        missing = [name for name in self._required if isinstance(name, str) and name not in ready]
        wrong = [name for where, _ in problems for name in self._properties if f"{where}.".startswith(f"{name}.")]
        return [*missing, *wrong]

    def _is_misspelled(self, name: str) -> bool:
        return name not in self._properties and bool(did_you_mean(name, self._properties, most=1))

    def _is_absent(self, name: str, value: Any) -> bool:
        if name in self._required or name not in self._properties:
            return False
        kind = self._kinds[name]
        if value is None:
            return kind != "any"
        return kind not in ("text", "any") and isinstance(value, str) and value.strip() in _ABSENT


def _mismatches(ready: Mapping[str, Any], compiled: BoundedSchema, max_steps: int | None) -> Sequence[Problem]:
    found: dict[Problem, None] = {}
    for error in compiled.errors(ready) if max_steps is None else compiled.errors(ready, max_steps):
        found[_described(error)] = None
        if len(found) >= _MAX_ERRORS:
            break
    return tuple(found)


def _described(error: Any) -> Problem:
    path: list[str | int] = list(error.absolute_path)
    where = ".".join(map(str, path))
    keyword, demand = str(error.validator), error.validator_value
    if keyword == "required":
        missing = next(name for name in demand if name not in error.instance and repr(name) in error.message)
        return ".".join(map(str, [*path, missing])), "is required"
    if keyword == "additionalProperties":
        return where, _unknown(str(path[-1]), error.schema.get("properties") or {})
    if keyword == "None":  # the schema `false`
        return where, f"{shown_value(error.instance)} is not allowed"
    if keyword == "uniqueItems":
        return where, "wants no item twice"
    if keyword in ("anyOf", "oneOf"):
        if (meant := _meant(error.context)) is not None:
            return _described(meant)
        wanted = _forms(demand)
    else:
        wanted = cut_middle(_demand(keyword, demand), _MAX_DEMAND_CHARS)
    return where, f"wants {wanted}; got {shown_value(error.instance)}"


def _on_one_line(text: str) -> str:
    """Names and values of a schema from others neither begin a line of ours nor move a cursor."""
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _demand(keyword: str, demand: Any) -> str:
    if keyword == "type":
        return " or ".join(map(str, _types(demand)))
    if keyword == "enum":
        return f"one of {', '.join(value if isinstance(value, str) else json.dumps(value) for value in demand)}"
    if keyword == "const":
        return json.dumps(demand)
    if keyword in _BOUNDS:
        return _BOUNDS[keyword].format(demand)
    return f"what its {keyword} says: {json.dumps(demand, ensure_ascii=False)}"


def _meant(context: Sequence[Any]) -> Any:
    """What is wrong in the one form of several that the value is meant to have; None if that is not clear."""
    by_form: dict[Any, list[Any]] = {}
    for error in context:
        by_form.setdefault(error.relative_schema_path[0], []).append(error)
    for is_other in (_is_of_another_type, _names_another_form):
        by_form = {form: errors for form, errors in by_form.items() if not any(map(is_other, errors))}
        if len(by_form) == 1:
            (errors,) = by_form.values()
            return errors[0]
    return None


def _is_of_another_type(error: Any) -> bool:
    return error.validator == "type" and not error.relative_path


def _names_another_form(error: Any) -> bool:
    return error.validator == "const"


def _forms(demand: Sequence[Any]) -> str:
    kinds = dict.fromkeys(
        str(kind) for one in demand if isinstance(one, dict) for kind in _types(cast("dict[str, Any]", one).get("type"))
    )
    if len(kinds) > 1 and "None" not in kinds:
        return " or ".join(kinds)
    return f"one of the {len(demand)} forms that its schema has"


def _types(demand: Any) -> Sequence[Any]:
    return cast("list[Any]", demand) if isinstance(demand, list) else (demand,)


def _unknown(given: str, properties: Mapping[str, Any]) -> str:
    if near := did_you_mean(given, properties, most=1):
        return f"unknown field; {near}"
    return f"unknown field; known are {cut_middle(', '.join(properties), _MAX_DEMAND_CHARS) or 'none'}"


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
