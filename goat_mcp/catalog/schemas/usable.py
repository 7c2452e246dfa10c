"""What keeps a schema from being listed at all, and what keeps a part of an entry from older clients (SCH-3, SCH-4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from goat_mcp.catalog.schemas.parameter_names import alike
from goat_mcp.catalog.schemas.references import expanded_size
from goat_mcp.catalog.schemas.subschemas import MAX_EXPANDED


def too_much_expanded(schema: Any) -> str:
    """In words, if following every reference would make too many parts; else empty."""
    if expanded_size(schema, MAX_EXPANDED) > MAX_EXPANDED:
        return f"has more than {MAX_EXPANDED} parts once its references are followed"
    return ""


def why_hopeless(input_schema: Mapping[str, Any]) -> str:
    """In words, if there is no way to call the tool; else empty."""
    kind: Any = input_schema.get("type", "object")
    kinds = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    if all(isinstance(one, str) for one in kinds) and "object" not in kinds:
        return "its inputSchema takes no object, which arguments always are"
    if twice := alike(input_schema):
        return f"two of its parameters would be listed as {twice}"
    return ""


def is_for_handshake(entry: Mapping[str, Any]) -> bool:
    """Whether clients of the handshake revisions take the entry's outputSchema: for them an object's, or none.

    One that they do not take makes them drop the whole list.
    """
    if "outputSchema" not in entry:
        return True
    output: Any = entry["outputSchema"]
    if not isinstance(output, dict):
        return False
    schema = cast("dict[str, Any]", output)
    return schema.get("type") == "object" and isinstance(schema.get("properties", {}), dict)


def for_handshake(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry as those clients get it; itself where they take all of it."""
    if is_for_handshake(entry):
        return entry
    return {key: value for key, value in entry.items() if key != "outputSchema"}
