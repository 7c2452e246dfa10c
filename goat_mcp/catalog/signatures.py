"""A tool's schemas as one line that a model reads like code: `create_issue(repo: str, labels?: list[str]) -> Issue`.

Whatever an upstream lists as a schema gives a line of bounded length; it need not be a valid one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

MAX_SIGNATURE_CHARS = 320
_NAME_CHARS = 128
_PARAMETERS_SHOWN = 10
_PARAMETER_CHARS = 40
_TYPE_CHARS = 64
_RETURN_CHARS = 60
_VALUES_SHOWN = 8
_LITERAL_CHARS = 20
_FIELDS_SHOWN = 5
_ARMS_SHOWN = 4
_DEPTH = 4
_SHORT = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list"}
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_LOCAL = re.compile(r"#/(?:\$defs|definitions)/([^/]+)")
_UNREADABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")


def signature(
    name: str,
    input_schema: Mapping[str, Any],
    output_schema: Mapping[str, Any] | None = None,
) -> str:
    """At most `MAX_SIGNATURE_CHARS` on one line: required parameters first, then optional ones with a `?`.

    What does not fit is counted (`... +7 more`).
    """
    shown_name = on_one_line(name, _NAME_CHARS)
    returns = f" -> {_returned(output_schema)}" if output_schema else ""
    listed = _parameters(input_schema)
    shown = listed[:_PARAMETERS_SHOWN]
    while True:
        left_out = len(listed) - len(shown)
        parts = [*shown, f"... +{left_out} more"] if left_out else shown
        line = f"{shown_name}({', '.join(parts)}){returns}"
        if len(line) <= MAX_SIGNATURE_CHARS:
            return line
        if returns:
            returns = ""
        elif shown:
            shown = shown[:-1]
        else:
            return line


def short_type(schema: Any, root: Mapping[str, Any]) -> str:
    """The type of one value, as in a signature. `root` has the definitions that it may refer to."""
    return _type(schema, _definitions(root))


def _parameters(schema: Mapping[str, Any]) -> list[str]:
    """Each parameter with its type. Only the types of those that may be shown are worked out."""
    properties = _object(schema.get("properties"))
    names = _required_first(schema, properties)
    definitions = _definitions(schema)
    first = [
        _parameter(name, is_required, _type(properties[name], definitions))
        for name, is_required in names[:_PARAMETERS_SHOWN]
    ]
    return [*first, *(name for name, _ in names[_PARAMETERS_SHOWN:])]


def _parameter(name: str, is_required: bool, kind: str) -> str:
    return f"{_named_field(name)}{'' if is_required else '?'}: {kind}"


def _named_field(name: str) -> str:
    """In quotation marks if it could be taken for anything but a name."""
    shown = on_one_line(name, _PARAMETER_CHARS)
    return shown if shown.isidentifier() else f'"{shown.replace(chr(34), chr(39))}"'


def _required_first(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Each name, and whether it is required."""
    required = {name for name in _list(schema.get("required")) if isinstance(name, str)}
    return sorted(((name, name in required) for name in properties), key=lambda one: not one[1])


def _type(schema: Any, definitions: Mapping[str, Any], depth: int = _DEPTH) -> str:
    """A type that is too long in full is shown by its kind alone."""
    kind = _kind(schema, definitions, depth)
    if len(kind) <= _TYPE_CHARS:
        return kind
    return next((short for start, short in (("list[", "list"), ("{", "object")) if kind.startswith(start)), "any")


def _kind(schema: Any, definitions: Mapping[str, Any], depth: int) -> str:
    stated = _object(schema)
    if not stated or depth <= 0:
        return "any"
    if "const" in stated:
        return _literal(stated["const"]) or "any"
    if values := _list(stated.get("enum")):
        return _literals(values)
    if isinstance(reference := stated.get("$ref"), str):
        found = _LOCAL.fullmatch(reference)
        return _type(definitions.get(found[1]) if found else None, definitions, depth - 1)
    kind: Any = stated.get("type")
    if isinstance(kind, list):
        kinds = [_named(one) for one in cast("list[Any]", kind)[:_ARMS_SHOWN] if one != "null"]
        return "|".join(dict.fromkeys(kinds)) or "any"
    if kind == "array":
        items = _type(stated.get("items"), definitions, depth - 1)
        return "list" if items == "any" else f"list[{items}]"
    if kind == "object" or (kind is None and "properties" in stated):
        return _fields(stated, definitions, depth)
    arms = _list(stated.get("anyOf")) or _list(stated.get("oneOf")) or _list(stated.get("allOf"))
    if kind is None and arms:
        kinds = [_type(arm, definitions, depth - 1) for arm in arms[:_ARMS_SHOWN]]
        return "|".join(dict.fromkeys(one for one in kinds if one != "null")) or "any"
    return _named(kind)


def _fields(schema: Mapping[str, Any], definitions: Mapping[str, Any], depth: int) -> str:
    properties = _object(schema.get("properties"))
    if not properties:
        values = _type(schema.get("additionalProperties"), definitions, depth - 1)
        return "object" if values == "any" else f"dict[str, {values}]"
    names = _required_first(schema, properties)
    shown = [
        _parameter(name, is_required, _type(properties[name], definitions, depth - 1))
        for name, is_required in names[:_FIELDS_SHOWN]
    ]
    return "{" + ", ".join([*shown, "..."] if len(names) > len(shown) else shown) + "}"


def _returned(schema: Mapping[str, Any]) -> str:
    """By name if the schema has one; otherwise the names of its fields."""
    properties = _object(schema.get("properties"))
    definitions = _definitions(schema)
    if list(properties) == ["result"]:  # how SDKs wrap what is no object
        return _cut(_named_type(properties["result"], definitions), _RETURN_CHARS)
    return _cut(_named_type(schema, definitions), _RETURN_CHARS)


def _named_type(schema: Any, definitions: Mapping[str, Any], depth: int = _DEPTH) -> str:
    stated = _object(schema)
    if depth <= 0:
        return "any"
    if isinstance(reference := stated.get("$ref"), str):
        found = _LOCAL.fullmatch(reference)
        return found[1] if found and _TYPE_NAME.fullmatch(found[1]) else "object"
    if stated.get("type") == "array":
        items = _named_type(stated.get("items"), definitions, depth - 1)
        return "list" if items == "any" else f"list[{items}]"
    properties = _object(stated.get("properties"))
    title: Any = stated.get("title")
    if properties and isinstance(title, str) and _TYPE_NAME.fullmatch(title):
        return title
    if properties:
        names = [_named_field(name) for name in [*properties][:_FIELDS_SHOWN]]
        return "{" + ", ".join([*names, "..."] if len(properties) > len(names) else names) + "}"
    return _type(stated, definitions, depth - 1)


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 3] + "..."


def _literals(values: Sequence[Any]) -> str:
    shown: list[str] = []
    for value in values[:_VALUES_SHOWN]:
        literal = _literal(value)
        if not literal or len("|".join([*shown, literal])) > _TYPE_CHARS - len("|..."):
            break
        shown.append(literal)
    if not shown:
        return "str" if isinstance(values[0], str) else "any"
    return "|".join(shown if len(shown) == len(values) else [*shown, "..."])


def _literal(value: Any) -> str:
    """Empty for a value that is too long to be shown, or no plain one."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):  # a huge one cannot even be written in decimals
        return str(value) if value.bit_length() < 64 else ""
    if isinstance(value, float):
        return repr(value)
    if not isinstance(value, str) or len(value) > _LITERAL_CHARS:
        return ""
    return f'"{on_one_line(value, _LITERAL_CHARS)}"'


def _named(kind: Any) -> str:
    shown = _SHORT.get(kind, kind) if isinstance(kind, str) else "any"
    return shown if _TYPE_NAME.fullmatch(shown) else "any"


def on_one_line(text: str, max_chars: int) -> str:
    """A line of the answer cannot be forged by what stands in a schema."""
    return _cut(" ".join(_UNREADABLE.sub(" ", text[:1_000]).split()), max_chars)


def _definitions(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**_object(schema.get("definitions")), **_object(schema.get("$defs"))}


def _object(value: Any) -> Mapping[str, Any]:
    """An empty one for anything else; names that are no text are left out by JSON."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()
