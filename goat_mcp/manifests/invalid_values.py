"""Values in a JSON Schema - `enum`, `const`, `default`, `examples` - that its own `type` refuses.

Most are texts that YAML takes for something else: `on`, `NO`, `12:30`. The schema is used nevertheless.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from goat_mcp.manifests.fields import Fields

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


def check_values(root: Fields, schema: Mapping[str, Any], place: tuple[str | int, ...]) -> None:
    """Note those of the schema at `place` below `root`; what lies deeper is asked for by itself."""
    given: Any = schema.get("type")
    kinds = cast("list[Any]", given) if isinstance(given, list) else [given]
    if not all(isinstance(kind, str) and kind in _KINDS for kind in kinds):
        return  # there is no type, or it is a problem of its own
    for below, value in _values(schema):
        if not any(_is_of(kind, value) for kind in kinds):
            at = (*place, *below)
            where = ".".join(map(str, at))
            wanted = " or ".join(kinds)
            what = f"{where} is {root.shown(value, *at)}, and the type is {wanted}"
            root.fail(what, _remedy(root, kinds, value, at), *at, is_fatal=False)


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
        quoted = root.quoted(*at) if "string" in kinds and at[-1] not in _ONE else ""
        nullable = f'write type: [{", ".join(kinds)}, "null"]'
        return f"{quoted}, or {nullable}" if quoted else f"{nullable}, or take it off"
    if "string" in kinds:
        return root.quoted(*at) or "write a text"
    if isinstance(value, str) and _is_written_as(kinds, value):
        return f"take the quotes off: {value}"
    return f"write a value of type {' or '.join(kinds)}, or mend the type"


def _is_written_as(kinds: list[str], text: str) -> bool:
    """Whether the text without its quotes would be of such a kind."""
    if text in _WORDS:
        return _WORDS[text] in kinds
    is_number = text.removeprefix("-").replace(".", "", 1).isdecimal()
    return is_number and ("number" in kinds or ("integer" in kinds and "." not in text))
