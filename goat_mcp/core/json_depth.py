"""How deep lists and objects of a JSON value lie in one another. Readers have limits, and so has recursion here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast


def is_deeper(value: Any, depth: int) -> bool:
    """Whether more than `depth` lists and objects lie in one another."""
    level: list[Any] = [value]
    for _ in range(depth + 1):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[Any, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list | tuple) else ()
