"""A form made from a tool's JSON schema, and the arguments of what a person filled in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import items, mapping

MAX_FIELDS = 60
MAX_CHOICES = 200
WHOLE = "arguments"
"""The field of a tool whose arguments are one JSON text."""


@dataclass(frozen=True)
class Field:
    """One argument. `id` names it in the form: names of strangers may hide characters. `kind`: `text`, `number`,
    `choice` or `json`; a choice holds JSON texts, each with what is shown."""

    id: str
    name: str
    kind: str
    description: str = ""
    is_required: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    default: str = ""


def fields_of(schema: Mapping[str, Any]) -> list[Field]:
    """A field for each property; one for all of them if there are too many, or none is named."""
    properties = mapping(schema.get("properties"))
    if not schema.get("properties") and _takes_nothing(schema):
        return []
    if not 0 < len(properties) <= MAX_FIELDS:
        return [Field(WHOLE, "arguments", "json")]
    required = items(schema.get("required"))
    return [
        _field(f"a{number}", str(name), mapping(one), is_required=name in required)
        for number, (name, one) in enumerate(properties.items())
    ]


def _takes_nothing(schema: Mapping[str, Any]) -> bool:
    if schema.get("additionalProperties") is False:
        return True
    return "additionalProperties" not in schema and not set(schema) - {"type", "properties", "$schema", "title"}


def _field(id: str, name: str, schema: Mapping[str, Any], *, is_required: bool) -> Field:
    schema = _without_null(schema)
    kind, choices = "json", tuple[tuple[str, str], ...]()
    values: Sequence[Any] = items(schema.get("enum")) if "enum" in schema else []
    if "const" in schema:
        values = [schema["const"]]
    if values and len(values) <= MAX_CHOICES:
        kind, choices = (
            "choice",
            tuple((json.dumps(one), one if isinstance(one, str) else json.dumps(one)) for one in values),
        )
    elif schema.get("type") == "boolean":
        kind, choices = "choice", (("true", "yes"), ("false", "no"))
    elif schema.get("type") == "string":
        kind = "text"
    elif schema.get("type") in ("number", "integer"):
        kind = "number"
    description = schema.get("description")
    default = schema.get("default")
    return Field(
        id,
        name,
        kind,
        description if isinstance(description, str) else "",
        is_required,
        choices,
        "" if default is None else default if kind == "text" and isinstance(default, str) else json.dumps(default),
    )


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """What may also be null is left out instead."""
    kinds: Any = schema.get("type")
    if isinstance(kinds, list):
        left = [kind for kind in cast("list[Any]", kinds) if kind != "null"]
        return {**schema, "type": left[0]} if len(left) == 1 else schema
    for key in ("anyOf", "oneOf"):
        left = [mapping(one) for one in items(schema.get(key)) if mapping(one).get("type") != "null"]
        if len(left) == 1 and len(items(schema.get(key))) == 2:
            return {**{name: value for name, value in schema.items() if name != key}, **left[0]}
    return schema


def arguments_of(schema: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    """What was filled in; an empty field is left out unless the tool needs a text. Raises `ToolError(INPUT)`."""
    found: dict[str, Any] = {}
    for field in fields_of(schema):
        text = form.get(field.id, "").replace("\r\n", "\n")
        if field.kind == "text":
            if text or field.is_required:
                found[field.name] = text
            continue
        if not text.strip():
            continue
        value = _json(field, text)
        if field.id == WHOLE:
            if not isinstance(value, dict):
                raise ToolError(ErrorCode.INPUT, "the arguments are no JSON object", 'Write e.g. {"name": "value"}.')
            return cast("dict[str, Any]", value)
        found[field.name] = value
    return found


def _json(field: Field, text: str) -> Any:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as why:
        example = "a number" if field.kind == "number" else 'JSON, e.g. ["a", "b"] or {"a": 1}'
        raise ToolError(ErrorCode.INPUT, f"{field.name[:100]}: {why}", f"Write {example}.") from None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (field.kind == "number" and not is_number) or (isinstance(value, float) and not math.isfinite(value)):
        raise ToolError(ErrorCode.INPUT, f"{field.name[:100]}: {text[:40]!r} is no number", "Write a number.")
    return value
