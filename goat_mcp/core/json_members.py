"""Members of JSON from elsewhere as what they should be, whatever was sent in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast


def mapping(value: Any) -> Mapping[str, Any]:
    """The object; an empty one for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def items(value: Any) -> Sequence[Any]:
    """The list; an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def mappings(value: Any) -> Sequence[Mapping[str, Any]]:
    """The objects of a list."""
    return [mapping(one) for one in items(value) if isinstance(one, dict)]


def count(value: Any) -> int | None:
    """The whole number from 0 on; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
