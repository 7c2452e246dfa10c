"""The plain half of a JSON Schema's object: fields of a simple type, and which of them must be there.

Most tools take a few texts and numbers. That such a value fits is seen at once, without the validation library. What
is not that plain is left to the library, and so is every mismatch and its words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format", "$comment"}
)
_PLAIN_MEMBERS = _ANNOTATIONS | {"type"}
_ROOT_MEMBERS = _PLAIN_MEMBERS | {"properties", "required", "additionalProperties", "$schema", "$defs", "definitions"}
_TYPES: Mapping[Any, frozenset[type]] = {
    "string": frozenset({str}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
}
Fits = Callable[[Any], bool]


def certain_fit(schema: Any) -> Fits:
    """What says True of a value that certainly fits the schema. False means no more than that somebody has to look."""
    if not isinstance(schema, dict) or not _is_flat(root := cast("dict[str, Any]", schema)):
        return _never
    required, may_have_others = tuple(root.get("required", ())), root.get("additionalProperties", True)
    types = {name: _types_of(field) for name, field in root.get("properties", {}).items()}
    unknown = None if may_have_others else frozenset[type]()

    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return False
        fields = cast("dict[str, Any]", value)
        for name in required:
            if name not in fields:
                return False
        for name, one in fields.items():
            allowed = types.get(name, unknown)
            if allowed is not None and type(one) not in allowed:
                return False
        return True

    return fits


def _never(value: Any) -> bool:
    return False


def _is_flat(root: dict[str, Any]) -> bool:
    required, properties = root.get("required", []), root.get("properties", {})
    return (
        root.get("type") == "object"
        and root.keys() <= _ROOT_MEMBERS
        and isinstance(properties, dict)
        and isinstance(required, list)
        and all(isinstance(name, str) for name in cast("list[Any]", required))
        and isinstance(root.get("additionalProperties", True), bool)
    )


def _types_of(field: Any) -> frozenset[type]:
    """What a field may be; nothing at all if it is not plain, so that the library looks at it."""
    if not isinstance(field, dict) or not (members := cast("dict[str, Any]", field)).keys() <= _PLAIN_MEMBERS:
        return frozenset()
    kind = members.get("type")
    return _TYPES.get(kind, frozenset()) if isinstance(kind, str) else frozenset()
