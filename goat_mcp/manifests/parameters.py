"""Checks that an export's `parameters` (or `output`) is a JSON Schema that describes an object.

The library that checks values against it is not used: that one is loaded with the first call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from goat_mcp.core.yaml_words import is_word
from goat_mcp.manifests.fields import Fields

_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
EMPTY: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
_SUBSCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")

_ONE = ("const", "default")
_SEVERAL = ("enum", "examples")
_PYTHON: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}
_KINDS = (*_PYTHON, "integer")
_WORDS = {"true": "boolean", "false": "boolean", "null": "null"}


def read_schema(fields: Fields, key: str) -> dict[str, Any] | None:
    """The schema in member `key`; None where it is not there, or broken, which is noted."""
    inner = fields.mapping(key)
    if inner is None:
        return None
    schema = dict(inner.tree)
    if "type" not in schema and "properties" in schema:
        schema["type"] = "object"
    if schema.get("type") != "object":
        inner.fail(f"{fields.name_of(key)} describes no object", "begin it with `type: object`")
        return None
    before = len(fields.problems)
    _check(inner, schema, ())
    return None if any(problem.is_fatal for problem in fields.problems[before:]) else schema


def _check(root: Fields, schema: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
    where = ".".join(map(str, path)) or "the schema"
    kinds = schema.get("type")
    for kind in cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds] if kinds is not None else []:
        if kind not in _TYPES:
            root.fail(f"{where}: type {kind!r:.40} is no JSON type", f"write one of {', '.join(_TYPES)}", *path, "type")
    properties: Any = schema.get("properties")
    if properties is not None:
        if isinstance(properties, dict):
            for name, child in cast("dict[str, Any]", properties).items():
                _check_child(root, child, (*path, "properties", name))
        else:
            root.fail(f"{where}: properties is no mapping", "write each property as `name: {type: ...}`", *path)
    _check_required(root, schema, path)
    if "enum" in schema and not (isinstance(schema["enum"], list) and schema["enum"]):
        root.fail(f"{where}: enum is no list of values", "write enum: [a, b]", *path, "enum")
    check_values(root, schema, path)
    for name in _SUBSCHEMAS:
        if name in schema:
            _check_child(root, schema[name], (*path, name))
    for name in _LISTS:
        children: Any = schema.get(name)
        for index, child in enumerate(cast("list[Any]", children) if isinstance(children, list) else []):
            _check_child(root, child, (*path, name, index))


def _check_required(root: Fields, schema: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
    required: Any = schema.get("required", [])
    where = ".".join(map(str, path)) or "the schema"
    if not isinstance(required, list):
        remedy = "write a list of names beside `properties`: required: [city]"
        root.fail(f"{where}: required is no list of names", remedy, *path, "required")
        return
    strange = [(index, one) for index, one in enumerate(cast("list[Any]", required)) if not isinstance(one, str)]
    for index, name in strange:
        below = (*path, "required", index)
        what = f"{where}: required holds {root.describe(name, *below)}"
        root.fail(what, root.quoting_hint(*below) or "write the names of properties: required: [city]", *below)
    if strange:
        return
    properties: Any = schema.get("properties")
    if path or not isinstance(properties, dict):
        return
    for index, name in enumerate(cast("list[str]", required)):
        if name not in properties:
            root.fail(
                f"required names {name!r:.60}, which is no property", "declare it or take it off", "required", index
            )


def _check_child(root: Fields, child: Any, path: tuple[str | int, ...]) -> None:
    if isinstance(child, dict):
        _check(root, cast("dict[str, Any]", child), path)
    elif not isinstance(child, bool):
        root.fail(f"{'.'.join(map(str, path))} is no schema", "write e.g. {type: string}", *path)


def check_values(root: Fields, schema: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
    """Note those of the schema at `path` below `root`; what lies deeper is asked for by itself.

    Where a text is due, a word that YAML has read as a truth value becomes that text again.
    """
    given: Any = schema.get("type")
    kinds = cast("list[Any]", given) if isinstance(given, list) else [given]
    if not all(isinstance(kind, str) and kind in _KINDS for kind in kinds):
        return  # there is no type, or it is a problem of its own
    for below, value in _values(schema):
        if not any(_is_of(kind, value) for kind in kinds):
            at = (*path, *below)
            if "string" in kinds and is_word(word := root.document.literals.get((*root.path, *at), "")):
                _put(schema, below, word)
                continue
            where = ".".join(map(str, at))
            wanted = " or ".join(kinds)
            what = f"{where} is {root.describe(value, *at)}, and the type is {wanted}"
            root.fail(what, _remedy(root, kinds, value, at), *at, level="warning")


def _put(schema: Any, below: tuple[str | int, ...], value: str) -> None:
    *above, key = below
    for step in above:
        schema = schema[step]
    schema[key] = value


def _values(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for key in _ONE:
        if key in schema:
            yield (key,), schema[key]
    for key in _SEVERAL:
        values: Any = schema.get(key)
        for index, value in enumerate(cast("list[Any]", values) if isinstance(values, list) else []):
            yield (key, index), value


def _is_of(kind: str, value: Any) -> bool:
    if kind == "integer":
        is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return is_whole and not isinstance(value, bool)
    return isinstance(value, _PYTHON[kind]) and not (kind == "number" and isinstance(value, bool))


def _remedy(root: Fields, kinds: list[str], value: Any, at: tuple[str | int, ...]) -> str:
    if value is None:
        quoted = root.quoting_hint(*at) if "string" in kinds and at[-1] not in _ONE else ""
        nullable = f'write type: [{", ".join(kinds)}, "null"]'
        return f"{quoted}, or {nullable}" if quoted else f"{nullable}, or take it off"
    if "string" in kinds:
        return root.quoting_hint(*at) or "write a text"
    if isinstance(value, str) and _is_written_as(kinds, value):
        return f"take the quotes off: {value}"
    return f"write a value of type {' or '.join(kinds)}, or fix the type"


def _is_written_as(kinds: list[str], text: str) -> bool:
    """Whether the text without its quotes would be of such a kind."""
    if text in _WORDS:
        return _WORDS[text] in kinds
    is_number = text.removeprefix("-").replace(".", "", 1).isdecimal()
    return is_number and ("number" in kinds or ("integer" in kinds and "." not in text))
